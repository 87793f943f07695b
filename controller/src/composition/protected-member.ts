import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import type { CompositionObject } from "./composition.ts";

/** The first member that must not be removed, and why; undefined where there is none. */
export function protectedMember(
  { status }: CompositionObject,
  kinds: ResourceKinds,
): { readonly name: string; readonly by: string } | undefined {
  for (const { name, kind, id, step } of status.members) {
    const by = step === "planned" || step === "leaving" ? undefined : kinds.of(kind).protectedBy(id);
    if (by !== undefined) return { name, by };
  }
  return undefined;
}
