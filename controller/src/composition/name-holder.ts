import { HoldfastError } from "@holdfast/common/errors.ts";
import { type Collection, ofOrganization } from "#kernel/store/collection.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import { type CompositionObject, type DesiredMember, resourceNameOf } from "./composition.ts";

interface Parent {
  readonly organizationId: string;
  readonly name: string;
  /** Absent for a composition that does not exist yet. */
  readonly object?: CompositionObject | undefined;
}

/**
 * Returns a function for the holder of a new resource's name: an existing resource, or another composition that plans
 * to create one, such as `stack shop`. Undefined if the name is free, or the parent holds it.
 */
export function nameHolderOf(
  { kinds, compositions }: { readonly kinds: ResourceKinds; readonly compositions: Collection<CompositionObject> },
  { organizationId, name: parent, object }: Parent,
): (desired: Pick<DesiredMember, "kind" | "name">) => string | undefined {
  const own = new Set(object?.status.members.map(({ id }) => id));
  const others = ofOrganization(compositions, organizationId).filter(
    ({ metadata, status }) => metadata.id !== object?.metadata.id && status.state !== "Deleted",
  );
  return ({ kind, name }) => {
    const resourceName = resourceNameOf(parent, name);
    const holder = kinds.of(kind).nameHolder?.(organizationId, resourceName);
    if (holder !== undefined && !own.has(holder.id)) return holder.text;
    const planner = others.find(({ status }) =>
      status.members.some(
        (member) => member.step === "planned" && member.kind === kind && member.resourceName === resourceName,
      ),
    );
    return planner && `${planner.spec.kind} ${planner.metadata.name}`;
  };
}

/** Throws NAME_TAKEN if the name of a new resource is in use, before anything is created. */
export function requireFreeNames(
  parent: string,
  created: readonly DesiredMember[],
  holderOf: (desired: DesiredMember) => string | undefined,
): void {
  const blocked = created.flatMap((desired) => {
    const holder = holderOf(desired);
    return holder === undefined
      ? []
      : [{ logical_name: desired.name, name: resourceNameOf(parent, desired.name), in_use_by: holder }];
  });
  const [first] = blocked;
  if (first === undefined) return;
  const { logical_name: logicalName, name, in_use_by: holder } = first;
  throw new HoldfastError("NAME_TAKEN", `${logicalName}: the name ${name} is in use by ${holder}.`, {
    members: { blocked },
  });
}
