import { pages } from "./pages.ts";
import { type Access, createAccess } from "./access.ts";
import { createServices, type Services } from "./services.ts";
import { createTransport, type TransportOptions } from "./transport.ts";
import type { Catalog, Configuration, Database, DatabasePassword, DatabaseUser, UserRole } from "./types.ts";

/** The API of one installation. */
export interface Client extends Access {
  readonly services: Services;
  readonly databaseUsers: DatabaseUsers;
  readonly databases: Databases;
  readonly configuration: {
    get(serviceId: string): Promise<Configuration>;
    /** null resets a parameter. */
    update(serviceId: string, parameters: Readonly<Record<string, string | null>>): Promise<Configuration>;
  };
  catalog(): Promise<Catalog>;
  /** A method of holdfast.admin.v1, for platform operators: "FleetService", "ListMachines". */
  admin<T>(service: string, method: string, request?: object): Promise<T>;
}

export interface DatabaseUsers {
  list(serviceId: string): AsyncGenerator<DatabaseUser>;
  create(serviceId: string, user: { readonly username: string; readonly role: UserRole }): Promise<DatabaseUser>;
  get(serviceId: string, username: string): Promise<DatabaseUser>;
  delete(serviceId: string, username: string): Promise<void>;
  revealPassword(serviceId: string, username: string): Promise<DatabasePassword>;
  resetPassword(serviceId: string, username: string): Promise<DatabasePassword>;
}

export interface Databases {
  list(serviceId: string): AsyncGenerator<Database>;
  create(serviceId: string, name: string): Promise<Database>;
  delete(serviceId: string, name: string): Promise<void>;
}

export function createClient(options: TransportOptions): Client {
  const transport = createTransport(options);
  const of = (serviceId: string, ...parts: string[]) =>
    ["/managed-services", encodeURIComponent(serviceId), ...parts.map(encodeURIComponent)].join("/");
  return {
    ...createAccess(transport),
    services: createServices(transport),
    databaseUsers: {
      list: (id) => pages(transport, of(id, "database-users"), "users"),
      create: (id, body) => transport.request("POST", of(id, "database-users"), { body }),
      get: (id, name) => transport.request("GET", of(id, "database-users", name)),
      delete: (id, name) => transport.request("DELETE", of(id, "database-users", name)),
      revealPassword: (id, name) => transport.request("POST", of(id, "database-users", name, "reveal-password")),
      resetPassword: (id, name) => transport.request("POST", of(id, "database-users", name, "reset-password")),
    },
    databases: {
      list: (id) => pages(transport, of(id, "databases"), "databases"),
      create: (id, name) => transport.request("POST", of(id, "databases"), { body: { name } }),
      delete: (id, name) => transport.request("DELETE", of(id, "databases", name)),
    },
    configuration: {
      get: (id) => transport.request("GET", of(id, "configuration")),
      update: (id, parameters) => transport.request("PATCH", of(id, "configuration"), { body: { parameters } }),
    },
    catalog: () => transport.request("GET", "/catalog"),
    admin: (service, method, request = {}) =>
      transport.request("POST", `/holdfast.admin.v1.${service}/${method}`, {
        body: request,
        headers: { "connect-protocol-version": "1" },
        single: !method.startsWith("List"),
      }),
  };
}
