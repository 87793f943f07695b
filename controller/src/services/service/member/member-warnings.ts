import { lookUp } from "@holdfast/common/look-up.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, WarningRecord } from "../managed-service.ts";
import { nodeStatusesOf } from "../health/managed-service-health.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import { nodeEvent, serviceEvent } from "../service-events.ts";
import { isEstablished } from "./members.ts";
import { isInSync } from "./member-roles.ts";
import { isPlanned, plannedRecheckInMs } from "./planned-work.ts";

/** Time that a problem must last to be reported. A restart takes less. */
const warningDelayMs = 10_000;

interface Warning {
  readonly key: string;
  readonly event: NewEvent;
  /** True if planned work explains the problem. */
  readonly isExplained: boolean;
}

/**
 * The current problems of members with their start times, and one event for each problem that has lasted long enough.
 */
export function warningTransitions(
  service: ManagedServiceObject,
  observed: ObservedService,
  now: number,
): { readonly record: Readonly<Record<string, WarningRecord>>; readonly events: readonly NewEvent[] } {
  const before = service.status.warnings ?? {};
  const found = warningsOf(service, observed, now).flatMap(({ key, event, isExplained }) => {
    const earlier = lookUp(before, key);
    // A problem that was announced before the planned work is not announced again after it.
    if (isExplained) return earlier?.announced === true ? [{ key, record: earlier, events: [] }] : [];
    const { since, announced } = earlier ?? { since: now, announced: false };
    const isDue = !announced && now - since >= warningDelayMs;
    return [{ key, record: { since, announced: announced || isDue }, events: isDue ? [event] : [] }];
  });
  return {
    record: Object.fromEntries(found.map(({ key, record }) => [key, record])),
    events: found.flatMap(({ events }) => events),
  };
}

/**
 * Milliseconds until a current problem has lasted long enough, or is no longer explained by planned work; null if there
 * is none.
 */
export function warningsRecheckInMs(service: ManagedServiceObject, now: number): number | null {
  const delays = Object.values(service.status.warnings ?? {}).flatMap(({ since, announced }) =>
    announced ? [] : [since + warningDelayMs - now],
  );
  const plannedMs = plannedRecheckInMs(service, now);
  if (plannedMs !== null) delays.push(plannedMs);
  return delays.length === 0 ? null : Math.max(1, Math.min(...delays));
}

/**
 * Problems of a running service with replicas. None during a primary change, because it explains the state of members.
 */
function warningsOf(service: ManagedServiceObject, observed: ObservedService, now: number): Warning[] {
  const { metadata, spec, status } = service;
  const members = observed.nodes.filter(({ node }) => isEstablished(node));
  const isWatched =
    spec.power === "on" && metadata.deletionRequestedAt === undefined && spec.primaryChange === undefined;
  if (!isWatched || members.length < 2 || status.state === "Pending" || status.state === "Provisioning") return [];
  const isExplained = ({ node }: ObservedNode) => isPlanned(service, node.id, now);
  const missing = members.filter((member) => !isInSync(service, member));
  const statuses = new Map(nodeStatusesOf(service, observed).map((node) => [node.id, node.status]));
  const unhealthy = members.filter((member) => isUnhealthy(member, statuses.get(member.node.id)));
  return [
    ...unhealthy.map((member) => {
      const { node } = member;
      const checks = status.health.checks.filter(({ nodeId }) => nodeId === node.id);
      const reason = checks.find((check) => check.status !== "healthy")?.reason ?? "";
      const event = nodeEvent("node.unhealthy", service, node, { reason });
      return { key: `node.unhealthy ${node.id}`, event, isExplained: isExplained(member) };
    }),
    ...(missing.length === 0 ? [] : [degraded(service, missing, missing.every(isExplained))]),
  ];
}

function degraded(service: ManagedServiceObject, missing: readonly ObservedNode[], isExplained: boolean): Warning {
  const data = { missing: missing.map(({ node }) => node.hostname) };
  return {
    key: "service.replication_degraded",
    event: serviceEvent("service.replication_degraded", service, data),
    isExplained,
  };
}

function isUnhealthy({ connected, isCurrent, instance }: ObservedNode, status: string | undefined): boolean {
  if (status === "Error" || status === "Unreachable") return true;
  return connected && isCurrent && instance?.checks.some((check) => check.status === "unhealthy") === true;
}
