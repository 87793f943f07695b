import type { Check } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { archivingCheck } from "./archiving-check.ts";
import type {
  HealthCheck,
  AnnouncedHealth,
  ManagedServiceObject,
  NodeStatus,
  ServiceHealth,
} from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import { isEstablished } from "../member/members.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import { serviceEvent } from "../service-events.ts";
import { plannedRecheckInMs } from "../member/planned-work.ts";
import { isRequiredForService, memberChecks } from "../member/member-roles.ts";

type Level = ServiceHealth["status"];
const order: readonly Level[] = ["healthy", "degraded", "unknown", "unhealthy"];

/** Reason of a recently started machine: earlier reports about its engine are obsolete. */
export const startingReason = "The machine was started and its engine has not reported yet.";
/** Reason of a service whose host is drained. */
export const drainReason = "The service is stopped for maintenance of its host, and starts automatically afterwards.";
/** Reason of a node whose agent is not connected. */
export const silentReason = "The agent does not respond.";

/** Combined health of the service's checks. `since` changes only with the status or the reason. */
export function healthOf(service: ManagedServiceObject, observed: ObservedService, now: number): ServiceHealth {
  const before = service.status.health;
  const members = observed.nodes.filter(({ node }) => isEstablished(node));
  const checks = oneOfEach([
    ...members.flatMap((node) => checksOf(service, node, now).map((check) => withServiceLevel(service, node, check))),
    ...memberChecks(service, observed.nodes, now),
    ...[archivingCheck(service, observed, now)].filter((check) => check !== undefined),
  ]).map((check) => withEarlierSince(check, before.checks));
  const worst = checks.reduce<Level>(
    (level, check) => (rank(check.status) > rank(level) ? check.status : level),
    "healthy",
  );
  const status = checks.length === 0 ? "unknown" : worst;
  const reason = checks.find((check) => check.status === status && status !== "healthy")?.reason ?? "";
  const since = before.status === status && before.reason === reason ? before.since : now;
  return { status, since, reason, checks };
}

/** One check of each name and node, the worst: a member and the controller both check the quorum. */
function oneOfEach(checks: readonly HealthCheck[]): HealthCheck[] {
  const found = new Map<string, HealthCheck>();
  for (const check of checks) {
    const key = `${check.name} ${check.nodeId}`;
    const other = found.get(key);
    if (other === undefined || rank(check.status) > rank(other.status)) found.set(key, check);
  }
  return [...found.values()];
}

/** The check with its effect on the service: a failing replica only degrades a service. */
function withServiceLevel(service: ManagedServiceObject, { node }: ObservedNode, check: HealthCheck): HealthCheck {
  if (isRequiredForService(service, node) || service.spec.power === "off" || check.status === "healthy") return check;
  return { ...check, status: "degraded" };
}

function rank(level: Level): number {
  return order.indexOf(level);
}

function withEarlierSince(check: HealthCheck, before: readonly HealthCheck[]): HealthCheck {
  const same = before.find(
    (old) => old.name === check.name && old.nodeId === check.nodeId && old.status === check.status,
  );
  return same === undefined ? check : { ...check, since: Math.min(same.since, check.since) };
}

function checksOf(
  service: ManagedServiceObject,
  { node, machine, connected, instance, isCurrent, stoppedForDrain }: ObservedNode,
  now: number,
): HealthCheck[] {
  const single = (name: string, status: Level, reason: string): HealthCheck[] => [
    { name, nodeId: node.id, status, since: now, reason },
  ];
  if (service.spec.power === "off") return single("agent", "unknown", "The service is stopped.");
  if (stoppedForDrain) return single("agent", "unknown", drainReason);
  if (machine === undefined) return single("agent", "unknown", "The machine is being created.");
  if (service.metadata.deletionRequestedAt !== undefined && machine.status.reason !== "")
    return single("machine", "unknown", `The deletion waits: ${machine.status.reason}`);
  if (!connected) {
    if (machine.status.state === "unreachable") return single("machine", "unknown", machine.status.reason);
    if (machine.status.state === "failed") return single("machine", "unhealthy", machine.status.reason);
    return single("agent", "unknown", silentReason);
  }
  if (instance === undefined) return single("liveness", "unknown", "The engine is being set up.");
  if (!isCurrent) return single("liveness", "unknown", startingReason);
  if (instance.state !== "running") {
    const reason = instance.reason === "" ? `The engine is ${instance.state}.` : instance.reason;
    // The engine runs but does not listen at an address of the service, so clients cannot connect.
    const isLost = instance.checks.some(({ name, status }) => name === "listener" && status === "unhealthy");
    return single("liveness", instance.state === "failed" || isLost ? "unhealthy" : "unknown", reason);
  }
  return instance.checks.map((check) => ({
    name: check.name,
    nodeId: node.id,
    status: levelOf(check),
    since: msOf(check.since) ?? now,
    reason: check.reason,
  }));
}

function levelOf(check: Check): Level {
  return order.find((level) => level === check.status) ?? "unknown";
}

function msOf(time: Timestamp | undefined): number | undefined {
  return time === undefined ? undefined : timestampMs(time);
}

/** The status of each node. */
export function nodeStatusesOf(service: ManagedServiceObject, observed: ObservedService): NodeStatus[] {
  return observed.nodes.map((node) => ({
    id: node.node.id,
    address: node.machine?.status.address ?? "",
    publicAddress: node.machine?.status.publicAddress ?? "",
    status: nodeStatusOf(service, node),
  }));
}

function nodeStatusOf(
  service: ManagedServiceObject,
  { machine, connected, instance, isCurrent, stoppedForDrain }: ObservedNode,
): NodeStatus["status"] {
  if (machine?.status.state === "failed" || instance?.state === "failed") return "Error";
  if (machine?.status.state === "stopped" && (service.spec.power === "off" || stoppedForDrain)) return "Stopped";
  if (connected && isCurrent && instance?.state === "running") return "Running";
  const wasUp = service.status.nodes.some((node) => node.id === machine?.metadata.id && node.status !== "Provisioning");
  // An agent may disconnect before its engine was ever ready: a running machine without a session is unreachable too.
  const isThere = wasUp || machine?.status.state === "running";
  if (!connected && isThere && service.spec.power === "on" && service.status.state === "Running") return "Unreachable";
  return "Provisioning";
}

/** Time that a status must last to be recorded as an event. */
const healthStableMs = 10_000;

/**
 * The recorded health, and the event of a status that has lasted for 10 s. While planned work explains the state of a
 * member, only `healthy` and `unhealthy` are announced.
 */
export function healthTransition(
  service: ManagedServiceObject,
  now: number,
): { readonly record: AnnouncedHealth; readonly event: NewEvent | undefined } {
  const { health, healthMemory } = service.status;
  // A restored service has not announced a status yet, so the current one is the first.
  const before = healthMemory ?? { announced: health.status, status: health.status, since: now };
  const record = before.status === health.status ? before : { ...before, status: health.status, since: now };
  const isFinished = record.announced === record.status || service.metadata.deletionRequestedAt !== undefined;
  if (isFinished || now - record.since < healthStableMs || isExplained(service, now))
    return { record, event: undefined };
  const event = serviceEvent("service.health_changed", service, {
    from: record.announced,
    to: record.status,
    reason: health.reason,
    checks: health.checks.map(({ name, nodeId, status, reason }) => ({ name, node_id: nodeId, status, reason })),
  });
  return { record: { ...record, announced: record.status }, event };
}

/** True while planned work on a member explains that the service is degraded, or its health unknown. */
function isExplained(service: ManagedServiceObject, now: number): boolean {
  const { status } = service.status.health;
  return (status === "degraded" || status === "unknown") && plannedRecheckInMs(service, now) !== null;
}

/** Milliseconds until the current status is recorded; null if there is nothing to record. */
export function healthRecheckInMs(service: ManagedServiceObject, now: number): number | null {
  const { metadata, status } = service;
  const record = status.healthMemory;
  if (record === undefined || record.announced === record.status || metadata.deletionRequestedAt !== undefined)
    return null;
  if (isExplained(service, now)) return plannedRecheckInMs(service, now);
  return Math.max(1, record.since + healthStableMs - now);
}
