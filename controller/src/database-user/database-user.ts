import type { Resource } from "../store/resource.ts";

/** A user that the platform made and whose password it keeps. Users made in SQL are known to the engine only. */
export type DatabaseUserObject = Resource<DatabaseUserSpec, DatabaseUserStatus>;

export interface DatabaseUserSpec {
  readonly serviceId: string;
  readonly username: string;
  readonly role: "admin" | "readwrite" | "readonly";
  /** Sealed under the object's key. */
  readonly sealedPassword: string;
  /** What the engine keeps instead of the password. */
  readonly verifier: string;
}

export type DatabaseUserStatus = Readonly<Record<string, never>>;

/** Users of one service lie side by side, so that they go with it. What was named in SQL may have any name. */
export function databaseUserId(serviceId: string, username: string): string {
  return `${serviceId}.${encodeURIComponent(username)}`;
}
