import { isFinished, type OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject, PlannedWork } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import { serviceOperations, type ServiceOperationType } from "../service-operations.ts";
import { isEstablished } from "./members.ts";
import { awaitsRollout, isSettled } from "./rollout-state.ts";

/*
 * Planned work on members. An operation, or the drain of a host, explains for a bounded time that a member is silent,
 * unhealthy or not in sync, so alerts about this member alone wait. Alerts about the service's data, such as those of a
 * lost quorum, and about other members do not.
 */

/**
 * Maximum time for which planned work explains the state of a member. A rolling update whose member takes longer fails
 * (`rollout-fault.ts`).
 */
const plannedMaxMs = 5 * 60_000;

/** Operations that restart, resize or replace existing members. */
const plannedTypes: ReadonlySet<string> = new Set<ServiceOperationType>([
  "restart",
  "configure",
  "maintenance",
  "upgrade",
  "resize",
  "expand",
]);

/**
 * The planned work on members by node id: its start, and whether it has ended. A member that fails, or that is settled
 * once, has no further planned work in the same operation. Undefined if there is none.
 */
export function plannedWorkOf(
  service: ManagedServiceObject,
  { nodes }: ObservedService,
  operation: OperationObject | undefined,
  now: number,
): Readonly<Record<string, PlannedWork>> | undefined {
  const { metadata, spec, status } = service;
  if (spec.power === "off" || metadata.deletionRequestedAt !== undefined) return undefined;
  const running = operation === undefined || isFinished(operation) ? undefined : operation;
  const before = new Map(Object.entries(status.plannedWork ?? {}));
  const found = nodes.flatMap((member): [string, PlannedWork][] => {
    const { id } = member.node;
    const earlier = before.get(id);
    const work = isEstablished(member.node) ? workOn(service, member, running, earlier) : "none";
    if (work === "none") return [];
    // The clock may have been set back.
    const since = Math.min(earlier?.since ?? now, now);
    const record = { since, ...(earlier?.ofDrain && { ofDrain: earlier.ofDrain }) };
    if (work === "ended" || earlier?.hasEnded === true)
      return earlier === undefined ? [] : [[id, { ...record, hasEnded: true }]];
    return [[id, work === "drain" ? { ...record, ofDrain: true } : record]];
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

type Work = "none" | "ended" | "operation" | "drain";

function workOn(
  service: ManagedServiceObject,
  member: ObservedNode,
  operation: OperationObject | undefined,
  earlier: PlannedWork | undefined,
): Work {
  const { spec } = service;
  const { node, machine, instance, stoppedForDrain } = member;
  if (stoppedForDrain) return "drain";
  const hasFailed = machine?.status.state === "failed" || instance?.state === "failed";
  // The member of a drained host starts again after the drain.
  if (earlier?.ofDrain === true) return hasFailed || isSettled(service, member) ? "none" : "drain";
  if (operation === undefined) return "none";
  if (hasFailed) return "ended";
  if (serviceOperations.move_node.is(operation))
    return spec.nodes.some(({ replaces }) => replaces?.nodeId === node.id) ? "operation" : "none";
  if (!plannedTypes.has(operation.spec.type)) return "none";
  // The operation has not reached the member.
  if (awaitsRollout(spec, node)) return "none";
  return isSettled(service, member) ? "ended" : "operation";
}

/** End of the time for which planned work explains the state of the member; undefined without such work. */
export function plannedUntil({ status }: Pick<ManagedServiceObject, "status">, nodeId: string): number | undefined {
  const work = new Map(Object.entries(status.plannedWork ?? {})).get(nodeId);
  return work === undefined || work.hasEnded === true ? undefined : work.since + plannedMaxMs;
}

/** True while planned work explains the state of the member. */
export function isPlanned(service: Pick<ManagedServiceObject, "status">, nodeId: string, now: number): boolean {
  const until = plannedUntil(service, nodeId);
  return until !== undefined && now < until;
}

/** Milliseconds until planned work no longer explains the state of a member; null if it explains that of none. */
export function plannedRecheckInMs(service: ManagedServiceObject, now: number): number | null {
  const delays = Object.keys(service.status.plannedWork ?? {}).flatMap((id) => {
    const until = plannedUntil(service, id);
    return until !== undefined && now < until ? [until - now] : [];
  });
  return delays.length === 0 ? null : Math.min(...delays);
}
