/** What the API answers about people, organizations, keys and tokens. Times are RFC 3339 texts in UTC. */

/** What a member may do; each may do all that the ones before may. */
export type Role = "viewer" | "developer" | "admin" | "owner";

/** How many of each an organization may have, or has. */
export interface OrganizationFigures {
  readonly services: number;
  readonly members: number;
  readonly api_keys: number;
  readonly tokens: number;
  readonly webhooks: number;
  /** Of all services together. */
  readonly storage_gb: number;
}

/** Who services, keys and members belong to. */
export interface Organization {
  readonly id: string;
  readonly name: string;
  readonly quota: OrganizationFigures;
  readonly usage: OrganizationFigures;
  readonly created_at: string;
  readonly updated_at: string;
}

/** A person in an organization. */
export interface Member {
  /** The user name. */
  readonly user_id: string;
  readonly role: Role;
  readonly created_at: string;
}

/** A person without a password: hand them the setup token. */
export interface CreatedUser {
  /** The user name. */
  readonly id: string;
  /** Good once, until `setup_expires_at`; shown this once. */
  readonly setup_token: string;
  readonly setup_expires_at: string;
  readonly created_at: string;
}

/** Who calls, where and with which rights. */
export interface Me {
  readonly kind: "user" | "api_key" | "token";
  readonly id: string;
  readonly name: string;
  /** The one that this call acts in; null for a person who must name one of several. */
  readonly organization_id: string | null;
  /** Null for keys and tokens. */
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
  /** As the audit log names them. */
  readonly created_by: string | null;
  /** Up to a minute old. */
  readonly last_used_at: string | null;
  /** Address of the caller. */
  readonly last_used_from: string | null;
}

/** An id and a secret that programs sign in with; the secret is not shown. */
export interface ApiKey extends Credential, Used {
  readonly name: string;
  /** Until when the secret before the last rotation works. */
  readonly previous_secret_expires_at: string | null;
}

/** A key with its secret. */
export interface CreatedApiKey extends Credential {
  readonly name: string;
  /** Shown this once. */
  readonly secret: string;
  readonly previous_secret_expires_at: string | null;
}

/** A key to be made. Scopes that the caller lacks are refused. */
export interface NewApiKey {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expires_at?: string | undefined;
}

/** What a token is limited to. */
export interface TokenResource {
  readonly kind: "managed-service";
  readonly id: string;
}

/** A bearer token, without its text. */
export interface Token extends Credential, Used {
  readonly resources: readonly TokenResource[];
}

/** A token with its text. */
export interface CreatedToken extends Credential {
  /** Shown this once. */
  readonly token: string;
  readonly resources: readonly TokenResource[];
}

/** A token to be made. Scopes that the caller lacks are refused. */
export interface NewToken {
  readonly scopes: readonly string[];
  /** A year at most. */
  readonly ttl_seconds: number;
  /** What it is limited to; everything of the organization when left out. */
  readonly resources?: readonly TokenResource[] | undefined;
}

/** Who did what, or was refused it. */
export interface AuditLogEntry {
  readonly id: string;
  readonly time: string;
  /** "user:NAME", "api_key:ID" or "token:ID". */
  readonly actor: string;
  /** Address that the request came from. */
  readonly source: string;
  /** Such as "managed-service.create". */
  readonly action: string;
  readonly object_kind: string;
  readonly object_id: string;
  readonly result: "ok" | "refused";
  /** `Request-Id` of the call. */
  readonly request_id: string;
}

/** An entry must have all that is given. */
export interface AuditFilter {
  readonly actor?: string | undefined;
  /** Id of an object. */
  readonly object?: string | undefined;
  readonly action?: string | undefined;
  /** From this time on. */
  readonly since?: string | undefined;
  /** Before this time. */
  readonly until?: string | undefined;
}
