import { isDeepStrictEqual } from "node:util";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { Instance } from "../engine-driver.ts";
import { call } from "./api.ts";
import { engineRole, type RoleDefinition, roleNames, rolesFor } from "./roles.ts";

const rolesPath = "/_plugins/_security/api/roles";

/** Sets the users' roles, which permit no writes while the disk is nearly full. */
export async function convergeRoles(instance: Instance, signal: AbortSignal): Promise<void> {
  const desired = rolesFor({ writesBlocked: instance.writesBlocked === true });
  const present = (await call(instance, { method: "GET", path: rolesPath }, signal)) as Record<string, RoleDefinition>;
  for (const name of roleNames) {
    if (isSame(lookUp(present, engineRole(name)), desired[name])) continue;
    const body = { ...desired[name], reserved: true };
    await call(instance, { method: "PUT", path: `${rolesPath}/${engineRole(name)}`, body }, signal);
  }
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
