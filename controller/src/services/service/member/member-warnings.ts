import { lookUp } from "@holdfast/common/look-up.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, WarningMemory } from "../managed-service.ts";
import { nodeStatusesOf } from "../managed-service-health.ts";
import type { ObservedNode, ObservedService } from "../observed-service.ts";
import { serviceEvent } from "../service-events.ts";
import { isPrimary, isStaying } from "./members.ts";
import { follows } from "./proven-replicas.ts";
import { nodeEvent } from "./settle-members.ts";

/** What is over before is not told, such as a restart. */
const holdsMs = 10_000;

interface Warning {
  readonly key: string;
  readonly event: NewEvent;
}

/** Pure: what is wrong with members now and since when, and the events of what has been wrong for long enough, each told once. */
export function rememberWarnings(
  service: ManagedServiceObject,
  observed: ObservedService,
  now: number,
): { readonly memory: Readonly<Record<string, WarningMemory>>; readonly events: readonly NewEvent[] } {
  const before = service.status.warnings ?? {};
  const found = warningsOf(service, observed).map(({ key, event }) => {
    const { since, told } = lookUp(before, key) ?? { since: now, told: false };
    const isDue = !told && now - since >= holdsMs;
    return { key, memory: { since, told: told || isDue }, events: isDue ? [event] : [] };
  });
  return {
    memory: Object.fromEntries(found.map(({ key, memory }) => [key, memory])),
    events: found.flatMap(({ events }) => events),
  };
}

/** When something will have been wrong for long enough; null while there is nothing of which to wait for that. */
export function warningsDueInMs({ status }: ManagedServiceObject, now: number): number | null {
  const due = Object.values(status.warnings ?? {}).flatMap(({ since, told }) => (told ? [] : [since + holdsMs - now]));
  return due.length === 0 ? null : Math.max(1, Math.min(...due));
}

/** Of services with replicas that are to run. While the primary changes, its members are as that has them. */
function warningsOf(service: ManagedServiceObject, observed: ObservedService): Warning[] {
  const { metadata, spec, status } = service;
  const members = observed.nodes.filter(({ node }) => isStaying(node));
  const isWatched = spec.power === "on" && metadata.deletionRequestedAt === undefined && spec.succession === undefined;
  if (!isWatched || members.length < 2 || status.state === "Pending" || status.state === "Provisioning") return [];
  const missing = members.filter((member) => !isPrimary(service, member.node) && !follows(member));
  const statuses = new Map(nodeStatusesOf(service, observed).map((node) => [node.id, node.status]));
  const unwell = members.filter((member) => isUnwell(member, statuses.get(member.node.id)));
  return [
    ...unwell.map(({ node }) => {
      const checks = status.health.checks.filter(({ nodeId }) => nodeId === node.id);
      const reason = checks.find((check) => check.status !== "healthy")?.reason ?? "";
      return { key: `node.unhealthy ${node.id}`, event: nodeEvent("node.unhealthy", service, node, { reason }) };
    }),
    ...(missing.length === 0 ? [] : [degraded(service, missing)]),
  ];
}

function degraded(service: ManagedServiceObject, missing: readonly ObservedNode[]): Warning {
  const told = { missing: missing.map(({ node }) => node.hostname) };
  return {
    key: "service.replication_degraded",
    event: serviceEvent("service.replication_degraded", service, told),
  };
}

function isUnwell({ connected, isCurrent, instance }: ObservedNode, status: string | undefined): boolean {
  if (status === "Error" || status === "Unreachable") return true;
  return connected && isCurrent && instance?.checks.some((check) => check.status === "unhealthy") === true;
}
