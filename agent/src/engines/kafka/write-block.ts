import type { Instance } from "../engine-driver.ts";
import { membersOf } from "../members.ts";
import {
  type AclBinding,
  addAcls,
  blockedWrites,
  keyOfAcl,
  listAcls,
  operation,
  pattern,
  permission,
  removeAcls,
  resource,
} from "./access.ts";
import { ownNumber, platform } from "./layout.ts";
import type { Connection } from "./protocol/connection.ts";

/** ACL that grants and denies nothing. It records a member whose disk is nearly full. */
export function fullMember(number: number): AclBinding {
  return {
    resourceType: resource.topic,
    resourceName: platform,
    patternType: pattern.literal,
    principal: `User:${platform}-full-${number}`,
    host: "*",
    operation: operation.describe,
    permission: permission.deny,
  };
}

const textOf = (acl: AclBinding): string => `${acl.principal} ${keyOfAcl(acl)}`;

/**
 * Rules to add and to remove. Users' writes are denied in all of the cluster while the disk of any member is nearly
 * full, because each of them has replicas of the partitions that the others lead.
 */
export function writeBlockChanges({
  acls,
  number,
  members,
  isFull,
}: {
  readonly acls: readonly AclBinding[];
  readonly number: number;
  readonly members: readonly number[];
  readonly isFull: boolean;
}): { readonly add: readonly AclBinding[]; readonly remove: readonly AclBinding[] } {
  const present = new Set(acls.map(textOf));
  const has = (acl: AclBinding) => present.has(textOf(acl));
  const isOtherFull = members.some((each) => each !== number && has(fullMember(each)));
  const own = [fullMember(number)];
  const isDenied = isFull || isOtherFull;
  return {
    add: [...(isFull ? own : []), ...(isDenied ? blockedWrites : [])].filter((acl) => !has(acl)),
    remove: [...(isFull ? [] : own), ...(isDenied ? [] : blockedWrites)].filter(has),
  };
}

/** Denies all users' writes while a disk is nearly full, and permits them again afterwards. */
export async function convergeWriteBlock(instance: Instance, session: Connection): Promise<void> {
  const number = ownNumber(instance);
  const members = membersOf(instance.spec).map((member) => member.number);
  // Another member may change the rules at the same time, so they are read again after a removal.
  for (let round = 0; round < 2; round += 1) {
    const acls = await listAcls(session, null);
    const { add, remove } = writeBlockChanges({ acls, number, members, isFull: instance.writesBlocked === true });
    await addAcls(session, add);
    if (remove.length === 0) return;
    await removeAcls(session, remove);
  }
}
