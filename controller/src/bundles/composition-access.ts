import type { Call } from "@holdfast/common/call.ts";
import { type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { organizationOf, requireScopes } from "#access/caller.ts";
import {
  type CompositionObject,
  type DesiredMember,
  type BundleKind,
  kindAndName,
  nameKey,
} from "#composition/composition.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";

// biome-ignore format: a table, aligned so that it reads as one
const notFound: Record<BundleKind, ErrorKey> = {
  project:  "PROJECT_NOT_FOUND",
  stack:    "STACK_NOT_FOUND",
  pipeline: "PIPELINE_NOT_FOUND",
};

/** The bundle with an id. Throws the 404 error of its kind if the caller's organization has no such bundle. */
export function requireById(
  compositions: Collection<CompositionObject>,
  kind: BundleKind,
  id: string,
  call: Call,
): Stored<CompositionObject> {
  const found = compositions.get(id);
  const isOfOrganization = found?.object.metadata.organizationId === organizationOf(call);
  if (found !== undefined && isOfOrganization && found.object.spec.kind === kind) return found;
  throw new HoldfastError(notFound[kind], `The organization has no such ${kind}.`);
}

/** The newest bundle of this name; undefined if there is none. */
export function findByName(
  compositions: Collection<CompositionObject>,
  kind: BundleKind,
  name: string,
  call: Call,
): Stored<CompositionObject> | undefined {
  return compositions.by(kindAndName, nameKey(kind, organizationOf(call), name)).at(-1);
}

/** The newest project of this name. Throws PROJECT_NOT_FOUND. */
export function requireByName(
  compositions: Collection<CompositionObject>,
  name: string,
  call: Call,
): Stored<CompositionObject> {
  const found = findByName(compositions, "project", name, call);
  if (found === undefined) throw new HoldfastError(notFound.project, `The organization has no project ${name}.`);
  return found;
}

/** Throws SCOPE_MISSING unless the caller has the scopes of all members' kinds. */
export function requireKindScopes(
  kinds: ResourceKinds,
  members: readonly Pick<DesiredMember, "kind">[],
  call: Call,
): void {
  requireScopes(call, new Set(members.flatMap(({ kind }) => kinds.of(kind).scopes)));
}

/** The sum of the members' quota amounts. */
export function quotaOf(
  kinds: ResourceKinds,
  members: readonly Pick<DesiredMember, "kind" | "spec">[],
): Readonly<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const { kind, spec } of members)
    for (const [name, amount] of Object.entries(kinds.of(kind).quotaOf(spec)))
      sums[name] = (lookUp(sums, name) ?? 0) + amount;
  return sums;
}
