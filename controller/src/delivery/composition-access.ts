import type { Call } from "@holdfast/common/call.ts";
import { type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { organizationOf, requireScopes } from "#access/caller.ts";
import { type CompositionObject, type Face, faceAndName, nameKey } from "#composition/composition.ts";
import type { DesiredMember } from "#composition/desired-member.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";

// biome-ignore format: a table, aligned so that it reads as one
const notFound: Record<Face, ErrorKey> = {
  project:  "PROJECT_NOT_FOUND",
  stack:    "STACK_NOT_FOUND",
  pipeline: "PIPELINE_NOT_FOUND",
};

/** Throws the 404 of the face for an id of another face or organization. */
export function requireById(
  compositions: Collection<CompositionObject>,
  face: Face,
  id: string,
  call: Call,
): Stored<CompositionObject> {
  const found = compositions.get(id);
  const isTheirs = found?.object.metadata.organizationId === organizationOf(call) && found.object.spec.face === face;
  if (found !== undefined && isTheirs) return found;
  throw new HoldfastError(notFound[face], `The organization has no such ${face}.`);
}

/** The newest of this name; undefined where there is none. */
export function findByName(
  compositions: Collection<CompositionObject>,
  face: Face,
  name: string,
  call: Call,
): Stored<CompositionObject> | undefined {
  return compositions.by(faceAndName, nameKey(face, organizationOf(call), name)).at(-1);
}

/** Throws PROJECT_NOT_FOUND. */
export function requireByName(
  compositions: Collection<CompositionObject>,
  name: string,
  call: Call,
): Stored<CompositionObject> {
  const found = findByName(compositions, "project", name, call);
  if (found === undefined) throw new HoldfastError(notFound.project, `The organization has no project ${name}.`);
  return found;
}

/** Throws SCOPE_MISSING: whoever makes something needs the scopes of what it consists of. */
export function requireKindScopes(kinds: ResourceKinds, members: readonly DesiredMember[], call: Call): void {
  requireScopes(call, new Set(members.flatMap(({ kind }) => kinds.of(kind).scopes)));
}

/** What the resources take of quotas together. */
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
