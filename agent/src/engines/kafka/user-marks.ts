import { randomUUID } from "node:crypto";
import { type AclBinding, operation, pattern, permission, principalOfUser, resource } from "./access.ts";
import { addAcls, listAcls, removeAcls } from "./acls.ts";
import { platform } from "./layout.ts";
import type { Connection } from "./protocol/connection.ts";

/**
 * A mark names the last change of a user, in an ACL that grants and denies nothing. No call reports which password a
 * broker applies, but brokers apply the metadata in the order of its log, and rights after passwords: a broker that
 * reports a mark, which is written after the password, applies that password too.
 */
function markOf(username: string, id: string): AclBinding {
  return {
    resourceType: resource.topic,
    resourceName: `${platform}-${id}`,
    patternType: pattern.literal,
    principal: markedPrincipal(username),
    host: "*",
    operation: operation.describe,
    permission: permission.deny,
  };
}

const markedPrincipal = (username: string): string => principalOfUser(`${platform}-mark-of-${username}`);

/** Writes a new mark in place of the former one. Returns whether a broker has it. */
export async function markChange(session: Connection, username: string): Promise<(at: Connection) => Promise<boolean>> {
  const mark = markOf(username, randomUUID());
  const before = await listAcls(session, mark.principal);
  await addAcls(session, [mark]);
  await removeAcls(session, before);
  return async (at) =>
    (await listAcls(at, mark.principal)).some(({ resourceName }) => resourceName === mark.resourceName);
}

export async function removeMark(session: Connection, username: string): Promise<void> {
  await removeAcls(session, await listAcls(session, markedPrincipal(username)));
}
