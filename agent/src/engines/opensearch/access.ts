import { isDeepStrictEqual } from "node:util";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { Instance } from "../engine-driver.ts";
import { membersOf } from "../members.ts";
import { call } from "./api.ts";
import { recordFull } from "./heartbeat.ts";
import { ownNumber } from "./layout.ts";
import { engineRole, type RoleDefinition, roleNames, rolesFor } from "./roles.ts";

const rolesPath = "/_plugins/_security/api/roles";

/**
 * Sets the users' roles. They permit no writes while the disk of any member is nearly full, because each of them has
 * copies of shards.
 */
export async function convergeRoles(instance: Instance, signal: AbortSignal): Promise<void> {
  const members = membersOf(instance.spec).map(({ number }) => number);
  const all = members.length === 0 ? [ownNumber(instance)] : members;
  // Another member may change the roles at the same time, so the records are read again after a change.
  for (let round = 0; round < 2; round += 1) {
    const writesBlocked = await recordFull(instance, all, signal);
    if (!(await putRoles(instance, writesBlocked, signal))) return;
  }
}

/** Resolves with false if the roles were the desired ones. */
async function putRoles(instance: Instance, writesBlocked: boolean, signal: AbortSignal): Promise<boolean> {
  const desired = rolesFor({ writesBlocked });
  let hasChanged = false;
  const present = (await call(instance, { method: "GET", path: rolesPath }, signal)) as Record<string, RoleDefinition>;
  for (const name of roleNames) {
    if (isSame(lookUp(present, engineRole(name)), desired[name])) continue;
    const body = { ...desired[name], reserved: true };
    await call(instance, { method: "PUT", path: `${rolesPath}/${engineRole(name)}`, body }, signal);
    hasChanged = true;
  }
  return hasChanged;
}

/** The plugin returns rights in the order in which it got them, and fields that the platform does not set. */
function isSame(present: RoleDefinition | undefined, desired: RoleDefinition): boolean {
  return (
    present !== undefined &&
    isDeepStrictEqual(present.cluster_permissions, desired.cluster_permissions) &&
    present.index_permissions.length === desired.index_permissions.length &&
    desired.index_permissions.every((each, at) => {
      const found = present.index_permissions[at];
      return (
        isDeepStrictEqual(found?.index_patterns, each.index_patterns) &&
        isDeepStrictEqual(found?.allowed_actions, each.allowed_actions)
      );
    })
  );
}
