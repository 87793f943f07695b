import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { type FieldFault, pointerOf } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { SpecChange, CostLine, Difference, ResourceSpec } from "#resource-kind/resource-kind.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import type { CompositionObject, DesiredMember, Member } from "./composition.ts";
import type { Observe } from "./composition-step.ts";
import type { PlanEntry, RedactedChange } from "./deployment.ts";
import type { Descriptor } from "./descriptor.ts";
import { driftOf, notApplied } from "./drift.ts";

/** The plan of a deployment, before anything is written. */
export interface DeployPlan {
  readonly entries: readonly PlanEntry[];
  /** Digest of the descriptor and the entries, such as `sha256:1f0c...`; it changes if either changes. */
  readonly digest: string;
  readonly monthlyCents: number;
  readonly beforeCents: number;
  readonly warnings: readonly string[];
  /** Conflicts of the descriptor with existing resources. */
  readonly faults: readonly FieldFault[];
}

export interface PlanContext {
  readonly kinds: ResourceKinds;
  /** The applied spec of a member. */
  readonly specOf: (member: Member) => ResourceSpec;
  readonly observe: Observe;
  /** Holder of the name that a new resource would have; undefined if the name is free. */
  readonly nameHolder?: (desired: DesiredMember) => string | undefined;
}

/** The only change in place that deployments perform; other changes are recorded, not applied (spec 3, Projects). */
const deployAction = "redeploy_app";

/** Plans the deployment of a descriptor. */
export function planDeploy(
  current: CompositionObject | undefined,
  descriptor: Descriptor,
  { kinds, ...observed }: PlanContext,
): DeployPlan {
  const context: PricedContext = { ...observed, kinds, linesOf: cachedLines(kinds) };
  const existing = (current?.status.members ?? []).filter((member) => exists(member, context));
  const entries = [
    ...descriptor.members.map((desired) =>
      entryOf(
        desired,
        existing.find(({ name }) => name === desired.name),
        context,
      ),
    ),
    ...existing
      .filter(({ name }) => !descriptor.members.some((desired) => desired.name === name))
      .map((member) => unmanagedEntry(member, context)),
  ];
  const monthlyCents = entries.reduce((sum, entry) => sum + entry.monthlyCents, 0);
  const beforeCents = existing.reduce((sum, member) => sum + centsOf(member.kind, context.specOf(member), context), 0);
  const text = canonicalize({ name: descriptor.name, members: descriptor.members, entries }) ?? "";
  return {
    entries,
    digest: `sha256:${createHash("sha256").update(text).digest("hex")}`,
    monthlyCents,
    beforeCents,
    warnings: warningsOf(entries, descriptor, context),
    faults: identityFaults(existing, descriptor, context),
  };
}

/** True if the member's resource exists and is not being removed. */
export function exists(member: Member, { observe }: Pick<PlanContext, "observe">): boolean {
  const { phase } = observe(member);
  return member.step === "ready" && phase !== "absent" && phase !== "deleting";
}

/** A context that caches the price of each spec. */
interface PricedContext extends PlanContext {
  readonly linesOf: (kind: string, spec: ResourceSpec) => readonly CostLine[];
}

function cachedLines(kinds: ResourceKinds): PricedContext["linesOf"] {
  const cached = new Map<ResourceSpec, readonly CostLine[]>();
  return (kind, spec) => {
    const lines = cached.get(spec) ?? costOf(kind, spec, kinds);
    cached.set(spec, lines);
    return lines;
  };
}

/** The monthly cost of a resource, line by line. */
export function costOf(kind: string, spec: ResourceSpec, kinds: ResourceKinds): readonly CostLine[] {
  return kinds.of(kind).monthlyCost(spec);
}

function centsOf(kind: string, spec: ResourceSpec, { linesOf }: PricedContext): number {
  return linesOf(kind, spec).reduce((sum, { cents }) => sum + cents, 0);
}

function entryOf(desired: DesiredMember, member: Member | undefined, context: PricedContext): PlanEntry {
  const { name, writtenKind: kind } = desired;
  const nothing = { name, kind, changes: [], pendingChanges: [], drift: [] };
  if (member === undefined) {
    const monthlyCents = centsOf(desired.kind, desired.spec, context);
    const nameHolder = context.nameHolder?.(desired);
    if (nameHolder === undefined) return { ...nothing, action: "create", reason: null, monthlyCents };
    return { ...nothing, action: "create", reason: `blocked: name in use by ${nameHolder}`, nameHolder, monthlyCents };
  }
  const before = context.specOf(member);
  const drift = driftOf(member, context).map(({ path }) => path);
  const difference: Difference =
    member.kind === desired.kind
      ? context.kinds.of(desired.kind).diff(before, desired.spec)
      : { change: "recorded", changes: [{ path: "kind", before: member.kind, after: desired.kind }] };
  if (difference.change === "inPlace" && difference.action === deployAction) {
    const monthlyCents = centsOf(desired.kind, desired.spec, context);
    return {
      ...nothing,
      action: "update",
      changes: difference.changes.map(redactedChange),
      reason: null,
      drift,
      monthlyCents,
    };
  }
  const observed = context.observe(member);
  const recorded = difference.change === "unchanged" ? [] : difference.changes;
  const pendingChanges = notApplied(recorded, desired.spec, observed.actual).map(redactedChange);
  const stoppedReason = observed.phase === "running" ? null : `It is not running: ${observed.detail ?? observed.phase}`;
  return {
    ...nothing,
    action: "noop",
    pendingChanges,
    drift,
    reason: pendingChanges.length > 0 ? "recorded, not applied" : stoppedReason,
    monthlyCents: centsOf(member.kind, before, context),
  };
}

/** Faults of members whose kind or identity, such as the engine, would change: the existing data prevents that. */
function identityFaults(
  existing: readonly Member[],
  { members }: Descriptor,
  { kinds, specOf }: PlanContext,
): readonly FieldFault[] {
  return members.flatMap(({ name, kind, writtenKind, spec }, index) => {
    const member = existing.find((each) => each.name === name);
    if (member === undefined) return [];
    const before = specOf(member);
    const isSame =
      member.kind === kind && (kinds.of(kind).identity ?? []).every((key) => lookUp(before, key) === lookUp(spec, key));
    if (isSame) return [];
    const identity = (kinds.of(member.kind).identity ?? []).flatMap((key) => {
      const value = lookUp(before, key);
      return typeof value === "string" ? [value] : [];
    });
    const field = `resources[${index}].kind`;
    const words = identity.length === 0 ? member.kind : identity.join(" ");
    const detail = `cannot become ${writtenKind}: ${name} is ${words} and keeps its data; use another name for the new resource`;
    return [{ field, pointer: `/descriptor${pointerOf(field)}`, code: "immutable", detail }];
  });
}

function unmanagedEntry(member: Member, context: PricedContext): PlanEntry {
  return {
    name: member.name,
    kind: member.kind,
    action: "unmanaged",
    changes: [],
    pendingChanges: [],
    drift: driftOf(member, context).map(({ path }) => path),
    reason: "The descriptor does not contain it; the resource remains unchanged.",
    monthlyCents: centsOf(member.kind, context.specOf(member), context),
  };
}

/** The change without secret values, for records and responses. */
export function redactedChange({ path, before, after, isSecret }: SpecChange): RedactedChange {
  const text = (value: unknown) => (value === undefined || isSecret === true ? null : JSON.stringify(value));
  return { path, before: text(before), after: text(after) };
}

function warningsOf(entries: readonly PlanEntry[], descriptor: Descriptor, context: PricedContext): readonly string[] {
  const unmanaged = entries.filter(({ action }) => action === "unmanaged").map(({ name }) => name);
  const pending = entries.filter(({ pendingChanges }) => pendingChanges.length > 0).map(({ name }) => name);
  const ceilings = descriptor.members.filter(({ kind, spec }) =>
    context.linesOf(kind, spec).some((line) => line.isCeiling),
  );
  return [
    ...(unmanaged.length > 0
      ? [`Not in the descriptor any more; these resources remain: ${unmanaged.join(", ")}.`]
      : []),
    ...(pending.length > 0 ? [`Recorded, not applied: ${pending.join(", ")}.`] : []),
    ...(ceilings.length > 0
      ? [`The cost depends on use; the plan has the maximum for: ${ceilings.map(({ name }) => name).join(", ")}.`]
      : []),
  ];
}
