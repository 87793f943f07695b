import { lookUp } from "@holdfast/common/look-up.ts";
import type { SpecChange, ResourceSpec } from "#resource-kind/resource-kind.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import {
  afterEvent,
  type CompositionObject,
  type CompositionSealer,
  type CompositionStatus,
  type DesiredMember,
  type Member,
} from "./composition.ts";
import type { DeploymentStep } from "./deployment.ts";
import type { Descriptor } from "./descriptor.ts";

/** The change of one resource by an upgrade (spec 3, Upgrade plan). */
export interface UpgradeChange {
  readonly name: string;
  readonly kind: string;
  readonly change: "unchanged" | "in_place" | "blocked";
  readonly action?: "redeploy_app" | "scale_app" | "scale_service";
  /** The changed values of the spec. */
  readonly target?: ResourceSpec;
  readonly reason?: string;
}

/**
 * Compares the new descriptor with the applied specs. A resource that cannot be changed in place blocks the
 * upgrade: added, removed or replaced resources, and all fields except those of the spec's table.
 */
export function planStackUpgrade(
  members: readonly Member[],
  descriptor: Descriptor,
  kinds: ResourceKinds,
  specOf: (member: Member) => ResourceSpec,
): readonly UpgradeChange[] {
  const changes = descriptor.members.map((desired): UpgradeChange => {
    const member = members.find(({ name }) => name === desired.name);
    const named = { name: desired.name, kind: desired.kind };
    if (member === undefined) return { ...named, change: "blocked", reason: "A resource cannot be added." };
    if (member.kind !== desired.kind)
      return {
        ...named,
        change: "blocked",
        reason: `A resource of kind ${member.kind} cannot become one of kind ${desired.kind}.`,
      };
    return { ...named, ...changeOf(member, desired, kinds, specOf) };
  });
  const removed = members
    .filter(({ name }) => !descriptor.members.some((desired) => desired.name === name))
    .map(({ name, kind }) => ({ name, kind, change: "blocked" as const, reason: "A resource cannot be removed." }));
  return [...changes, ...removed];
}

function changeOf(
  member: Member,
  desired: DesiredMember,
  kinds: ResourceKinds,
  specOf: (member: Member) => ResourceSpec,
): Pick<UpgradeChange, "change" | "action" | "target" | "reason"> {
  const kind = kinds.of(desired.kind);
  const difference = kind.diff(specOf(member), desired.spec);
  if (difference.change === "unchanged") return { change: "unchanged" };
  if (difference.change === "recorded" || kind.act === undefined)
    return { change: "blocked", reason: `It cannot be changed in place: ${keysOf(difference.changes).join(", ")}.` };
  const target = Object.fromEntries(keysOf(difference.changes).map((key) => [key, lookUp(desired.spec, key)]));
  return { change: "in_place", action: difference.action, target };
}

function keysOf(changes: readonly SpecChange[]): readonly string[] {
  return [...new Set(changes.map(({ path }) => path.split(".")[0] ?? path))];
}

/** The reasons for which an upgrade is blocked, one sentence per resource. */
export function blockedReasons(changes: readonly UpgradeChange[]): readonly string[] {
  return changes.flatMap(({ name, change, reason }) => (change === "blocked" ? [`${name}: ${reason}`] : []));
}

/** The steps of an upgrade, in the order of members. */
export function stepsOf(members: readonly Member[], changes: readonly UpgradeChange[]): readonly DeploymentStep[] {
  return members.flatMap(({ name }) => {
    const action = changes.find((each) => each.name === name)?.action;
    return action === undefined ? [] : [{ name, action, status: "Pending" as const, error: null }];
  });
}

/**
 * The stack after the request to upgrade it to another version of its template; undefined if its state does not permit
 * it. Members change one after the other in the order of dependencies.
 */
export function upgradeRequested(
  current: CompositionObject,
  descriptor: Descriptor,
  changes: readonly UpgradeChange[],
  request: {
    readonly deploymentId: string;
    readonly upgrade: Omit<NonNullable<CompositionStatus["upgrade"]>, "sealedDesired">;
    readonly seal: CompositionSealer;
    readonly now: number;
  },
): CompositionObject | undefined {
  const { seal, now, deploymentId, upgrade } = request;
  const { id } = current.metadata;
  const members = current.status.members.map((member): Member => {
    const planned = changes.find(({ name }) => name === member.name);
    const desired = descriptor.members.find(({ name }) => name === member.name);
    if (planned?.action === undefined || desired === undefined) return member;
    const { action, target = {} } = planned;
    return {
      ...member,
      change: { action, step: "wanted", keys: Object.keys(target), sealedTarget: seal.seal(id, desired.spec) },
    };
  });
  const sealedDesired = seal.seal(id, descriptor.members);
  const change = { members, deploymentId, detail: null, upgrade: { ...upgrade, sealedDesired } };
  return afterEvent(current, "upgradeRequested", now, change)?.after;
}
