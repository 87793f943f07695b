import type { Collection } from "#kernel/store/collection.ts";
import type { Resource } from "#kernel/store/resource.ts";
import { defineKind } from "#kernel/store/kind.ts";

/** A user that the platform made and whose password it keeps. Users made in SQL are known to the engine only. */
export type DatabaseUserObject = Resource<DatabaseUserSpec, DatabaseUserStatus>;

export const databaseUserKind = defineKind<DatabaseUserObject>("database-user", { indexes: [serviceOfUser] });

/** Index: the users of one service. */
export function serviceOfUser({ spec }: DatabaseUserObject): string {
  return spec.serviceId;
}

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

/** The managed users of a service, by name. */
export function usersOfService(
  users: Pick<Collection<DatabaseUserObject>, "by">,
  serviceId: string,
): DatabaseUserObject[] {
  const found = users.by(serviceOfUser, serviceId).map(({ object }) => object);
  return found.sort((a, b) => (a.spec.username < b.spec.username ? -1 : 1));
}
