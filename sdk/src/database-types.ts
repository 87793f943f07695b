import type { Operation } from "./operation-types.ts";

/** What is inside the engine of a service: users and databases. Times are RFC 3339 texts in UTC. */

/** "custom" was made inside the engine, with rights of its own; it cannot be asked for. */
export type UserRole = "admin" | "readwrite" | "readonly" | "custom";

/** A user inside the engine of a service. */
export interface DatabaseUser {
  readonly service_id: string;
  readonly username: string;
  readonly role: UserRole;
  /** True when the platform made it and keeps its password. */
  readonly managed: boolean;
  readonly created_at: string | null;
  /** What changes it in the engine, until it is over. */
  readonly operation: Operation | null;
}

/** A user that goes, or is gone. */
export interface DatabaseUserDeletion {
  readonly service_id: string;
  readonly username: string;
  /** Until it is over. */
  readonly operation: Operation | null;
}

/** A user to be made; the platform makes its password. */
export interface NewDatabaseUser {
  readonly username: string;
  readonly role: UserRole;
}

/** A password of a database user, readable. Keep it out of logs. */
export interface DatabasePassword {
  readonly service_id: string;
  readonly username: string;
  readonly password: string;
  /** While the engine has not taken it yet: until then the password before it holds. */
  readonly operation: Operation | null;
}

/** A database inside a service. */
export interface Database {
  readonly service_id: string;
  readonly name: string;
  readonly owner: string;
  readonly size_bytes: number;
  /** What makes or drops it, until it is over. */
  readonly operation: Operation | null;
}

/** A database that goes, or is gone. */
export interface DatabaseDeletion {
  readonly service_id: string;
  readonly name: string;
  /** Until it is over. */
  readonly operation: Operation | null;
}
