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
  const detail = `It belongs to ${managedBy.kind} ${managedBy.id}, ${remedyOf(managedBy.kind, action)}.`;
  throw new HoldfastError("MANAGED_BY_PARENT", detail, {
    members: { managed_by: { kind: managedBy.kind, id: managedBy.id }, action },
  });
}

/** The way out that the parent offers: it can be deleted, and only a project releases a member. */
function remedyOf(parent: string, action: string): string {
  const isProject = parent === "project";
  const release = "deploy a descriptor without it and release it from the project";
  if (action === "delete") return `which deletes it: delete the ${parent}${isProject ? `, or ${release} first` : ""}`;
  return `which has no ${action}${isProject ? `: ${release} first` : " of its members"}`;
}
