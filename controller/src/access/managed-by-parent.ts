import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Resource } from "#kernel/store/resource.ts";

/**
 * Actions on a managed object that only its parent may perform. All others are open to users, such as a restart, and
 * the growth of a disk, which the parent records.
 */
const parentActions: ReadonlySet<string> = new Set(["delete", "stop", "resize", "rename"]);

/**
 * Throws MANAGED_BY_PARENT when a caller requests an action that only the object's parent may perform. The parent's
 * reconciler writes the object without this check.
 */
export function refuseIfManaged({ metadata }: Resource<unknown, unknown>, action: string): void {
  const { managedBy } = metadata;
  if (managedBy === undefined || !parentActions.has(action)) return;
  const parent = `${managedBy.kind} ${managedBy.id}`;
  throw new HoldfastError("MANAGED_BY_PARENT", `It belongs to ${parent}; ${action} the ${managedBy.kind} instead.`, {
    members: { managed_by: { kind: managedBy.kind, id: managedBy.id }, action },
  });
}
