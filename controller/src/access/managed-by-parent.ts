import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Resource } from "#kernel/store/resource.ts";

/**
 * Actions on a managed object that are its parent's alone. All others, such as a restart, are open to its users too.
 */
const parentsOwn: ReadonlySet<string> = new Set(["delete", "stop", "resize", "expand", "rename"]);

/**
 * Throws MANAGED_BY_PARENT when a caller asks for an action on a managed object that is its parent's alone. The
 * parent's own reconciler writes the object itself and does not ask here.
 */
export function refuseIfManaged({ metadata }: Resource<unknown, unknown>, action: string): void {
  const { managedBy } = metadata;
  if (managedBy === undefined || !parentsOwn.has(action)) return;
  throw new HoldfastError("MANAGED_BY_PARENT", `It belongs to ${managedBy.kind} ${managedBy.id}; ${action} that one.`, {
    members: { managed_by: { kind: managedBy.kind, id: managedBy.id }, action },
  });
}
