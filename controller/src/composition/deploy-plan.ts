import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { Change, CostLine, Difference, Observation, ResourceSpec } from "#resource-kind/resource-kind.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import { specChanges } from "#resource-kind/spec-changes.ts";
import type { CompositionObject, Member } from "./composition.ts";
import type { Observe } from "./composition-step.ts";
import type { PlanEntry, ShownChange } from "./deployment.ts";
import type { Descriptor } from "./descriptor.ts";
import type { DesiredMember } from "./desired-member.ts";

/** What a deployment would do, before anything is written. */
export interface DeployPlan {
  readonly entries: readonly PlanEntry[];
  /** Of the descriptor and of what it changes: another text whenever either is another. */
  readonly digest: string;
  readonly monthlyCents: number;
  readonly beforeCents: number;
  readonly warnings: readonly string[];
}

export interface PlanWorld {
  readonly kinds: ResourceKinds;
  /** The spec that a member was made with, or was changed to in place. */
  readonly specOf: (member: Member) => ResourceSpec;
  readonly observe: Observe;
}

/** The change in place that deployments make; all others are written down alone (spec 3, Projects). */
const deployAction = "redeploy_app";

/** Pure: what a deployment of the descriptor does with each resource. */
export function planDeploy(
  current: CompositionObject | undefined,
  descriptor: Descriptor,
  { kinds, ...seen }: PlanWorld,
): DeployPlan {
  const world: PlannedWorld = { ...seen, kinds, linesOf: linesOnce(kinds) };
  const there = (current?.status.members ?? []).filter((member) => isThere(member, world));
  const entries = [
    ...descriptor.members.map((desired) =>
      entryOf(
        desired,
        there.find(({ name }) => name === desired.name),
        world,
      ),
    ),
    ...there
      .filter(({ name }) => !descriptor.members.some((desired) => desired.name === name))
      .map((member) => unmanagedEntry(member, world)),
  ];
  const monthlyCents = entries.reduce((sum, entry) => sum + entry.monthlyCents, 0);
  const beforeCents = there.reduce((sum, member) => sum + centsOf(member.kind, world.specOf(member), world), 0);
  const text = canonicalize({ name: descriptor.name, members: descriptor.members, entries }) ?? "";
  return {
    entries,
    digest: `sha256:${createHash("sha256").update(text).digest("hex")}`,
    monthlyCents,
    beforeCents,
    warnings: warningsOf(entries, descriptor, world),
  };
}

/** Pure: does it exist, and is it to stay? */
export function isThere(member: Member, { observe }: Pick<PlanWorld, "observe">): boolean {
  const { phase } = observe(member);
  return member.step === "ready" && phase !== "absent" && phase !== "deleting";
}

/** Each spec is priced once. */
interface PlannedWorld extends PlanWorld {
  readonly linesOf: (kind: string, spec: ResourceSpec) => readonly CostLine[];
}

function linesOnce(kinds: ResourceKinds): PlannedWorld["linesOf"] {
  const known = new Map<ResourceSpec, readonly CostLine[]>();
  return (kind, spec) => {
    const lines = known.get(spec) ?? costOf(kind, spec, kinds);
    known.set(spec, lines);
    return lines;
  };
}

/** Pure: what a resource with this spec costs a month, line by line. */
export function costOf(kind: string, spec: ResourceSpec, kinds: ResourceKinds): readonly CostLine[] {
  return kinds.of(kind).monthlyCost(spec);
}

function centsOf(kind: string, spec: ResourceSpec, { linesOf }: PlannedWorld): number {
  return linesOf(kind, spec).reduce((sum, { cents }) => sum + cents, 0);
}

function entryOf(desired: DesiredMember, member: Member | undefined, world: PlannedWorld): PlanEntry {
  const { name, writtenKind: kind } = desired;
  const nothing = { name, kind, changes: [], pendingChanges: [], drift: [] };
  if (member === undefined)
    return { ...nothing, action: "create", reason: null, monthlyCents: centsOf(desired.kind, desired.spec, world) };
  const before = world.specOf(member);
  const drift = driftOf(member, world).map(({ path }) => path);
  const isSame = member.kind === desired.kind;
  const difference: Difference = isSame
    ? world.kinds.of(desired.kind).diff(before, desired.spec)
    : { change: "recorded", changes: [{ path: "kind", before: member.kind, after: desired.kind }] };
  if (difference.change === "inPlace" && difference.action === deployAction) {
    const monthlyCents = centsOf(desired.kind, desired.spec, world);
    return { ...nothing, action: "update", changes: difference.changes.map(shown), reason: null, drift, monthlyCents };
  }
  const pendingChanges = difference.change === "unchanged" ? [] : difference.changes.map(shown);
  const observed = world.observe(member);
  const rests = observed.phase === "running" ? null : `It is not running: ${observed.detail ?? observed.phase}`;
  return {
    ...nothing,
    action: "noop",
    pendingChanges,
    drift,
    reason: pendingChanges.length > 0 ? "recorded, not applied" : rests,
    monthlyCents: centsOf(member.kind, before, world),
  };
}

function unmanagedEntry(member: Member, world: PlannedWorld): PlanEntry {
  return {
    name: member.name,
    kind: member.kind,
    action: "unmanaged",
    changes: [],
    pendingChanges: [],
    drift: driftOf(member, world).map(({ path }) => path),
    reason: "The descriptor does not name it; it stays as it is.",
    monthlyCents: centsOf(member.kind, world.specOf(member), world),
  };
}

/** Pure: where a resource is not as it was made, as far as it tells. */
export function driftOf(member: Member, { specOf, observe }: PlanWorld): readonly Change[] {
  const recorded = specOf(member);
  const { actual }: Observation = observe(member);
  const told = Object.keys(recorded).filter((key) => Object.hasOwn(actual, key));
  const pick = (from: ResourceSpec) => Object.fromEntries(told.map((key) => [key, lookUp(from, key)]));
  return specChanges(pick(recorded), pick(actual));
}

/** A change as it is shown and kept: without values that are secret. */
export function shown({ path, before, after, isSecret }: Change): ShownChange {
  const text = (value: unknown) => (value === undefined || isSecret === true ? null : JSON.stringify(value));
  return { path, before: text(before), after: text(after) };
}

function warningsOf(entries: readonly PlanEntry[], descriptor: Descriptor, world: PlannedWorld): readonly string[] {
  const left = entries.filter(({ action }) => action === "unmanaged").map(({ name }) => name);
  const pending = entries.filter(({ pendingChanges }) => pendingChanges.length > 0).map(({ name }) => name);
  const ceilings = descriptor.members.filter(({ kind, spec }) =>
    world.linesOf(kind, spec).some((line) => line.isCeiling),
  );
  return [
    ...(left.length > 0 ? [`Not in the descriptor any more, and still there: ${left.join(", ")}.`] : []),
    ...(pending.length > 0 ? [`Recorded, not applied: ${pending.join(", ")}.`] : []),
    ...(ceilings.length > 0
      ? [`The cost depends on use, up to what is shown: ${ceilings.map(({ name }) => name).join(", ")}.`]
      : []),
  ];
}
