import type * as types from "./access-types.ts";
import { pages } from "./pages.ts";
import type { Transport } from "./transport.ts";

/** People, organizations, keys, tokens and what they did. */
export interface Access {
  me(): Promise<types.Me>;
  readonly organizations: {
    list(): AsyncGenerator<types.Organization>;
    create(name: string): Promise<types.Organization>;
    get(id: string): Promise<types.Organization>;
    rename(id: string, name: string): Promise<types.Organization>;
    delete(id: string): Promise<void>;
  };
  readonly members: {
    list(organizationId: string): AsyncGenerator<types.Member>;
    add(organizationId: string, userId: string, role: types.Role): Promise<types.Member>;
    update(organizationId: string, userId: string, role: types.Role): Promise<types.Member>;
    remove(organizationId: string, userId: string): Promise<void>;
  };
  readonly users: {
    /** The setup token in the answer is shown this once. */
    create(username: string): Promise<types.CreatedUser>;
    setUp(token: string, password: string): Promise<void>;
    changePassword(currentPassword: string, newPassword: string): Promise<void>;
  };
  readonly apiKeys: {
    list(): AsyncGenerator<types.ApiKey>;
    /** The secret in the answer is shown this once. */
    create(key: {
      readonly name: string;
      readonly scopes: readonly string[];
      readonly expires_at?: string;
    }): Promise<types.CreatedApiKey>;
    rotate(id: string, overlapHours?: number): Promise<types.CreatedApiKey>;
    delete(id: string): Promise<void>;
  };
  readonly tokens: {
    list(): AsyncGenerator<types.Token>;
    /** The token in the answer is shown this once. */
    create(token: {
      readonly scopes: readonly string[];
      readonly ttl_seconds: number;
      readonly resources?: readonly types.TokenResource[];
    }): Promise<types.CreatedToken>;
    delete(id: string): Promise<void>;
  };
  /** Newest first. */
  auditLog(filter?: types.AuditFilter): AsyncGenerator<types.AuditLogEntry>;
}

export function createAccess(transport: Transport): Access {
  const path = (...parts: string[]) => `/${parts.map(encodeURIComponent).join("/")}`;
  const member = (id: string, ...userId: string[]) => path("organizations", id, "members", ...userId);
  return {
    me: () => transport.request("GET", "/me"),
    organizations: {
      list: () => pages(transport, "/organizations", "organizations"),
      create: (name) => transport.request("POST", "/organizations", { body: { name } }),
      get: (id) => transport.request("GET", path("organizations", id)),
      rename: (id, name) => transport.request("PATCH", path("organizations", id), { body: { name } }),
      delete: (id) => transport.request("DELETE", path("organizations", id)),
    },
    members: {
      list: (id) => pages(transport, member(id), "members"),
      add: (id, userId, role) => transport.request("POST", member(id), { body: { user_id: userId, role } }),
      update: (id, userId, role) => transport.request("PATCH", member(id, userId), { body: { role } }),
      remove: (id, userId) => transport.request("DELETE", member(id, userId)),
    },
    users: {
      create: (username) => transport.request("POST", "/users", { body: { username } }),
      setUp: (token, password) => transport.request("POST", "/users/setup", { body: { token, password } }),
      changePassword: (currentPassword, newPassword) =>
        transport.request("POST", "/users/me/password", {
          body: { current_password: currentPassword, new_password: newPassword },
        }),
    },
    apiKeys: {
      list: () => pages(transport, "/api-keys", "api_keys"),
      create: (body) => transport.request("POST", "/api-keys", { body }),
      rotate: (id, overlapHours = 0) =>
        transport.request("POST", `${path("api-keys", id)}/rotate`, { body: { overlap_hours: overlapHours } }),
      delete: (id) => transport.request("DELETE", path("api-keys", id)),
    },
    tokens: {
      list: () => pages(transport, "/tokens", "tokens"),
      create: (body) => transport.request("POST", "/tokens", { body }),
      delete: (id) => transport.request("DELETE", path("tokens", id)),
    },
    auditLog: (filter) => pages(transport, "/audit-log", "entries", { query: { ...filter } }),
  };
}
