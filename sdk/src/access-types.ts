/** What the API answers about people, organizations, keys and tokens. Times are RFC 3339 texts in UTC. */

export type Role = "viewer" | "developer" | "admin" | "owner";

export interface OrganizationFigures {
  readonly services: number;
  readonly members: number;
  readonly api_keys: number;
  readonly tokens: number;
  readonly webhooks: number;
  /** Of all services together. */
  readonly storage_gb: number;
}

export interface Organization {
  readonly id: string;
  readonly name: string;
  readonly quota: OrganizationFigures;
  readonly usage: OrganizationFigures;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface Member {
  /** The user name. */
  readonly user_id: string;
  readonly role: Role;
  readonly created_at: string;
}

export interface CreatedUser {
  readonly id: string;
  readonly setup_token: string;
  readonly setup_expires_at: string;
  readonly created_at: string;
}

export interface Me {
  readonly kind: "user" | "api_key" | "token";
  readonly id: string;
  readonly name: string;
  readonly organization_id: string | null;
  readonly role: Role | null;
  readonly scopes: readonly string[];
  readonly expires_at: string | null;
  readonly organizations: readonly { readonly id: string; readonly name: string; readonly role: Role | null }[];
}

interface Credential {
  readonly id: string;
  readonly scopes: readonly string[];
  readonly expires_at: string | null;
  readonly created_at: string;
}

interface Used {
  readonly created_by: string | null;
  readonly last_used_at: string | null;
  readonly last_used_from: string | null;
}

export interface ApiKey extends Credential, Used {
  readonly name: string;
  readonly previous_secret_expires_at: string | null;
}

export interface CreatedApiKey extends Credential {
  readonly name: string;
  readonly secret: string;
  readonly previous_secret_expires_at: string | null;
}

export interface NewApiKey {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expires_at?: string | undefined;
}

export interface TokenResource {
  readonly kind: "managed-service";
  readonly id: string;
}

export interface Token extends Credential, Used {
  readonly resources: readonly TokenResource[];
}

export interface CreatedToken extends Credential {
  readonly token: string;
  readonly resources: readonly TokenResource[];
}

export interface NewToken {
  readonly scopes: readonly string[];
  readonly ttl_seconds: number;
  /** What it is limited to; everything of the organization when left out. */
  readonly resources?: readonly TokenResource[] | undefined;
}

export interface AuditLogEntry {
  readonly id: string;
  readonly time: string;
  readonly actor: string;
  readonly source: string;
  readonly action: string;
  readonly object_kind: string;
  readonly object_id: string;
  readonly result: "ok" | "refused";
  readonly request_id: string;
}

export interface AuditFilter {
  readonly actor?: string | undefined;
  /** Id of an object. */
  readonly object?: string | undefined;
  readonly action?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}
