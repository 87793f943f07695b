import { lookUp } from "@holdfast/common/look-up.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, WarningRecord } from "../managed-service.ts";
import { nodeStatusesOf } from "../health/managed-service-health.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import { nodeEvent, serviceEvent } from "../service-events.ts";
import { isEstablished } from "./members.ts";
import { isInSync } from "./member-roles.ts";

/** Time that a problem must last to be reported. A restart takes less. */
const warningDelayMs = 10_000;

interface Warning {
  readonly key: string;
  readonly event: NewEvent;
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
  const found = warningsOf(service, observed).map(({ key, event }) => {
    const { since, announced } = lookUp(before, key) ?? { since: now, announced: false };
    const isDue = !announced && now - since >= warningDelayMs;
    return { key, record: { since, announced: announced || isDue }, events: isDue ? [event] : [] };
  });
  return {
    record: Object.fromEntries(found.map(({ key, record }) => [key, record])),
    events: found.flatMap(({ events }) => events),
  };
}

/** Milliseconds until a current problem has lasted long enough; null if there is none. */
export function warningsRecheckInMs({ status }: ManagedServiceObject, now: number): number | null {
  const delays = Object.values(status.warnings ?? {}).flatMap(({ since, announced }) =>
    announced ? [] : [since + warningDelayMs - now],
  );
  return delays.length === 0 ? null : Math.max(1, Math.min(...delays));
}

/**
 * Problems of a running service with replicas. None during a primary change, because it explains the state of members.
 */
function warningsOf(service: ManagedServiceObject, observed: ObservedService): Warning[] {
  const { metadata, spec, status } = service;
  const members = observed.nodes.filter(({ node }) => isEstablished(node));
  const isWatched =
    spec.power === "on" && metadata.deletionRequestedAt === undefined && spec.primaryChange === undefined;
  if (!isWatched || members.length < 2 || status.state === "Pending" || status.state === "Provisioning") return [];
  const missing = members.filter((member) => !isInSync(service, member));
  const statuses = new Map(nodeStatusesOf(service, observed).map((node) => [node.id, node.status]));
  const unhealthy = members.filter((member) => isUnhealthy(member, statuses.get(member.node.id)));
  return [
    ...unhealthy.map(({ node }) => {
      const checks = status.health.checks.filter(({ nodeId }) => nodeId === node.id);
      const reason = checks.find((check) => check.status !== "healthy")?.reason ?? "";
      return { key: `node.unhealthy ${node.id}`, event: nodeEvent("node.unhealthy", service, node, { reason }) };
    }),
    ...(missing.length === 0 ? [] : [degraded(service, missing)]),
  ];
}

function degraded(service: ManagedServiceObject, missing: readonly ObservedNode[]): Warning {
  const data = { missing: missing.map(({ node }) => node.hostname) };
  return {
    key: "service.replication_degraded",
    event: serviceEvent("service.replication_degraded", service, data),
  };
}

function isUnhealthy({ connected, isCurrent, instance }: ObservedNode, status: string | undefined): boolean {
  if (status === "Error" || status === "Unreachable") return true;
  return connected && isCurrent && instance?.checks.some((check) => check.status === "unhealthy") === true;
}
