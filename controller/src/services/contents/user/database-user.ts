import { makePassword } from "#kernel/secrets/engine-password.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, newMetadata, type Resource } from "#kernel/store/resource.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { DatabaseUserRole } from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import { engineProfileOf } from "../../engine/engine-profiles.ts";

/** A user that the platform created, with its password. Users created in SQL exist in the engine only. */
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
  /** Encrypted under the object's key. */
  readonly sealedPassword: string;
  /** Hash of the password in the engine's format, such as a SCRAM verifier (RFC 5803). */
  readonly verifier: string;
  /** Key of a files service, whose access key id is the username; absent for a user of a database. */
  readonly key?: {
    readonly id: string;
    readonly name: string;
    /** Consumer that the key belongs to: an attachment, or a resource of a project. It ends with the attachment. */
    readonly consumerId?: string;
  };
  /** The attachment of a hosted app that the user belongs to (attached-login.ts); absent for a user of the owner. */
  readonly attachment?: { readonly id: string; readonly appName: string };
}

export interface DatabaseUserStatus {
  /** True once the engine has the user of an attachment. */
  readonly isInEngine?: true;
}

/**
 * Id of a user. Users of one service are adjacent in the store. Names created in SQL may have any characters, so they
 * are encoded.
 */
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

// biome-ignore format: a table, aligned so that it reads as one
const roles: readonly (readonly [DatabaseUserRole, string])[] = [
  [DatabaseUserRole.ADMIN,     "admin"],
  [DatabaseUserRole.READWRITE, "readwrite"],
  [DatabaseUserRole.READONLY,  "readonly"],
  [DatabaseUserRole.CUSTOM,    "custom"],
];

/** The role in API messages. */
export function roleMessage(role: string): DatabaseUserRole {
  return roles.find(([, name]) => name === role)?.[0] ?? DatabaseUserRole.CUSTOM;
}

/** The role of a request. Validation admits only roles that the platform grants. */
export function roleName(role: DatabaseUserRole): DatabaseUserSpec["role"] {
  return asManagedRole(roles.find(([message]) => message === role)?.[1] ?? "");
}

export function asManagedRole(role: string): DatabaseUserSpec["role"] {
  if (role === "admin" || role === "readwrite" || role === "readonly") return role;
  throw new Error(`${role} is not a role that the platform grants`);
}

export interface NewUserArgs {
  readonly serviceId: string;
  readonly organizationId: string;
  readonly username: string;
  readonly role: DatabaseUserObject["spec"]["role"];
  readonly engine: string;
  readonly sealer: Sealer;
  readonly now: number;
}

/** A user with a new random password: the object has it encrypted, and its verifier for the engine. */
export function newUser({ serviceId, organizationId, username, role, engine, sealer, now }: NewUserArgs): {
  user: DatabaseUserObject;
  password: string;
} {
  const id = databaseUserId(serviceId, username);
  const password = makePassword();
  const user: DatabaseUserObject = {
    metadata: newMetadata(id, now, { name: username, organizationId }),
    spec: {
      serviceId,
      username,
      role,
      sealedPassword: sealer.seal(password, keyOf(databaseUserKind, id)),
      verifier: engineProfileOf(engine).verifierOf(password),
    },
    status: {},
  };
  return { user, password };
}
