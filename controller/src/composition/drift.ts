import { lookUp } from "@holdfast/common/look-up.ts";
import { type ResourceSpec, type SpecChange, specChanges } from "#resource-kind/resource-kind.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import type { DesiredMember, Member } from "./composition.ts";
import type { Observe } from "./composition-step.ts";

interface DriftContext {
  readonly kinds: ResourceKinds;
  /** The applied spec of a member. */
  readonly specOf: (member: Member) => ResourceSpec;
  readonly observe: Observe;
}

/** Differences between the applied spec of a resource and its observed values. */
export function driftOf(
  member: Member,
  { specOf, observe }: Pick<DriftContext, "specOf" | "observe">,
): readonly SpecChange[] {
  return specChanges(...reported(specOf(member), observe(member).actual));
}

/**
 * Differences between the last deployment's descriptor and the observed values of a resource, also those that the
 * deployment recorded and did not apply. `desired`: the resource in that descriptor; undefined if the descriptor lacks
 * it, and the applied spec counts.
 */
export function driftFromDescriptor(
  member: Member,
  desired: Pick<DesiredMember, "kind" | "spec"> | undefined,
  context: DriftContext,
): readonly SpecChange[] {
  if (desired?.kind !== member.kind) return driftOf(member, context);
  const { actual } = context.observe(member);
  // A larger disk is a change that the composition follows, and no drift.
  const expected = context.kinds.of(member.kind).followed?.(desired.spec, actual) ?? desired.spec;
  const difference = context.kinds.of(member.kind).diff(...reported(expected, actual));
  return difference.change === "unchanged" ? [] : difference.changes;
}

/** The changes that a resource does not have yet: a user may have made them directly. */
export function notApplied(
  changes: readonly SpecChange[],
  desired: ResourceSpec,
  actual: ResourceSpec,
): readonly SpecChange[] {
  const isWithin = (path: string, other: string) => path === other || path.startsWith(`${other}.`);
  const different = specChanges(actual, desired).map(({ path }) => path);
  const isReported = (path: string) => Object.keys(actual).some((key) => isWithin(path, key));
  const isDifferent = (path: string) => different.some((other) => isWithin(path, other) || isWithin(other, path));
  return changes.filter(({ path }) => !isReported(path) || isDifferent(path));
}

/** The two specs, with the members that the resource reports. */
function reported(expected: ResourceSpec, actual: ResourceSpec): readonly [ResourceSpec, ResourceSpec] {
  const keys = Object.keys(expected).filter((key) => Object.hasOwn(actual, key));
  const pick = (from: ResourceSpec) => Object.fromEntries(keys.map((key) => [key, lookUp(from, key)]));
  return [pick(expected), pick(actual)];
}
