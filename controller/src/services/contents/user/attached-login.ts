import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import { databaseUserId, databaseUserKind, type DatabaseUserObject, newUser } from "./database-user.ts";

/**
 * A hosted app connects to an attached database as a separate user, which is stored with the attachment and ends with
 * it: the attachment's transaction creates the user or marks it as deleted, and a reconciler makes the engine follow
 * (attached-login-reconciler.ts). The user may do what the default user may. In PostgreSQL its sessions begin as the
 * default user, so that this one owns what the app creates, and nothing is left when the attachment ends.
 */
export interface AttachedLogin {
  readonly username: string;
  readonly password: string;
}

export interface AttachedLoginDeps {
  readonly users: Pick<Collection<DatabaseUserObject>, "get">;
  readonly sealer: Sealer;
}

const idLength = 12;

/** Adds the user of a new attachment to the unit of work, and returns its name. */
export function addLogin(
  unit: Changes,
  { metadata, spec }: ManagedServiceObject,
  attachment: { readonly id: string; readonly appName: string },
  { sealer, now }: { readonly sealer: Sealer; readonly now: number },
): string {
  const username = `app_${attachment.id.replaceAll("-", "").slice(-idLength)}`;
  const { id: serviceId, organizationId } = metadata;
  const engine = spec.databaseType;
  const { user } = newUser({ serviceId, organizationId, username, role: "admin", engine, sealer, now });
  unit.create(databaseUserKind, { ...user, spec: { ...user.spec, attachment } });
  return username;
}

/** Marks the user of an attachment as deleted in the unit of work: its sessions end within seconds. */
export function endLogin(unit: Changes, login: Stored<DatabaseUserObject>, now: number): void {
  const { metadata } = login.object;
  if (metadata.deletionRequestedAt !== undefined) return;
  unit.update(databaseUserKind, login, { ...login.object, metadata: { ...metadata, deletionRequestedAt: now } });
}

/** The user of an attachment with its password; undefined until the engine has it. */
export function loginOf(
  serviceId: string,
  username: string,
  { users, sealer }: AttachedLoginDeps,
): AttachedLogin | undefined {
  const user = users.get(databaseUserId(serviceId, username))?.object;
  if (user === undefined || user.status.isInEngine !== true) return undefined;
  return { username, password: sealer.open(user.spec.sealedPassword, keyOf(databaseUserKind, user.metadata.id)) };
}

/** Role as which the sessions of a user begin; undefined for the user itself. */
export function sessionRoleOf({ spec }: DatabaseUserObject, engine: string): string | undefined {
  return spec.attachment !== undefined && engine === "postgresql" ? defaultUser : undefined;
}

/** Throws NOT_POSSIBLE for the user of an attachment, which only its app changes. */
export function refuseAttachedLogin(user: DatabaseUserObject | undefined): void {
  const { attachment } = user?.spec ?? {};
  if (attachment === undefined) return;
  throw new HoldfastError(
    "NOT_POSSIBLE",
    `${user?.spec.username} is the user of app ${attachment.appName}. It ends with the attachment ${attachment.id}.`,
  );
}
