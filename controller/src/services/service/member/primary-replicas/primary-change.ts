import { type ManagedServiceObject, type PrimaryChange, withoutFailoverCandidacy } from "../../managed-service.ts";
import type { ObservedNode, ObservedService } from "../../reconcile/observed-service.ts";
import type { LogEnd } from "./replication/log-position.ts";
import { type MemberState, planPrimaryChange, type PrimaryChangeVerdict } from "./primary-change-plan.ts";

/** The next step of the service's primary change; undefined without one. */
export function primaryChangeVerdict(
  service: ManagedServiceObject,
  observed: ObservedService,
  now: number,
): PrimaryChangeVerdict | undefined {
  const { primaryChange, instanceGeneration } = service.spec;
  if (primaryChange === undefined) return undefined;
  const stateOf = (id: string) =>
    memberState(
      observed.nodes.find(({ node }) => node.id === id),
      instanceGeneration,
    );
  return planPrimaryChange(primaryChange, stateOf(primaryChange.from), stateOf(primaryChange.to), now);
}

/** State of the old primary. */
export function oldPrimaryState(service: ManagedServiceObject, observed: ObservedService): MemberState {
  const { primaryChange, instanceGeneration } = service.spec;
  const old = observed.nodes.find(({ node }) => node.id === primaryChange?.from);
  return memberState(old, instanceGeneration);
}

const unknownState: MemberState = { isConnected: false, hasNewestSettings: false, engine: "unknown" };

/**
 * State by the last report. Reported settings and stopped data are on the disk, so they remain true without the agent.
 */
function memberState(member: ObservedNode | undefined, generation: number): MemberState {
  if (member?.instance === undefined) return unknownState;
  const { connected, isCurrent, instance } = member;
  const hasNewestSettings = Number(instance.generation) >= generation;
  return { isConnected: connected && isCurrent, hasNewestSettings, engine: engineOf(instance) };
}

function engineOf({ state, replication }: NonNullable<ObservedNode["instance"]>): MemberState["engine"] {
  if (state === "running") return replication?.role === "primary" ? "writes" : "unknown";
  if (state !== "stopped" || replication === undefined) return "unknown";
  if (replication.stoppedAt !== "") return "ended";
  // Data without a reported role prove nothing.
  if (replication.dataRole === "") return "unknown";
  return replication.dataRole === "replica" ? "follower" : "cutOff";
}

/** End of the old primary's log after an orderly shutdown; undefined while that is unknown. */
export function oldPrimaryLogEnd({ spec }: ManagedServiceObject, observed: ObservedService): LogEnd | undefined {
  const old = observed.nodes.find(({ node }) => node.id === spec.primaryChange?.from);
  const state = memberState(old, spec.instanceGeneration);
  const replication = old?.instance?.replication;
  if (!state.hasNewestSettings || state.engine !== "ended" || replication === undefined) return undefined;
  return { position: replication.stoppedAt, history: replication.stoppedHistory };
}

/** True if the new primary has taken a write in its term. */
export function hasTakenOver({ spec, status }: ManagedServiceObject, observed: ObservedService): boolean {
  if (spec.primaryChange?.step !== "promote") return false;
  const newPrimary = observed.nodes.find(({ node }) => node.id === status.primaryNodeId);
  const { isConnected, hasNewestSettings, engine } = memberState(newPrimary, spec.instanceGeneration);
  return isConnected && hasNewestSettings && engine === "writes";
}

/** The service with this node as the primary of a new term. */
export function withNamedPrimary(
  service: ManagedServiceObject,
  to: string,
  now: number,
  extra: Pick<PrimaryChange, "hasPromoted"> = {},
): ManagedServiceObject {
  const { spec, status } = service;
  const primaryChange: PrimaryChange | undefined = spec.primaryChange && {
    ...spec.primaryChange,
    to,
    step: "promote",
    stepSince: now,
    ...extra,
  };
  // Replicas of the old primary are not failover candidates until they follow the new one.
  const nodes = spec.nodes.map(withoutFailoverCandidacy);
  return {
    ...service,
    spec: { ...spec, nodes, instanceGeneration: spec.instanceGeneration + 1, ...(primaryChange && { primaryChange }) },
    status: { ...status, primaryNodeId: to, term: status.term + 1 },
  };
}

/** The service without a primary, until the named primary reports its state. */
export function withoutNamedPrimary(service: ManagedServiceObject, now: number): ManagedServiceObject {
  const { spec, status } = service;
  const primaryChange: PrimaryChange | undefined = spec.primaryChange && {
    ...spec.primaryChange,
    step: "recall",
    stepSince: now,
  };
  return {
    ...service,
    spec: { ...spec, instanceGeneration: spec.instanceGeneration + 1, ...(primaryChange && { primaryChange }) },
    status: { ...status, term: status.term + 1 },
  };
}

/** The service after the change is complete. */
export function withoutPrimaryChange(service: ManagedServiceObject): ManagedServiceObject {
  const { primaryChange: _, ...spec } = service.spec;
  return { ...service, spec };
}
