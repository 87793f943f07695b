import type { Check } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { archivingCheck } from "./archiving-check.ts";
import type { HealthCheck, ManagedServiceObject, NodeStatus, ServiceHealth } from "./managed-service.ts";
import type { ObservedNode, ObservedService } from "./observed-service.ts";
import { isPrimary, isStaying } from "./member/members.ts";

type Level = ServiceHealth["status"];
const order: readonly Level[] = ["healthy", "degraded", "unknown", "unhealthy"];

/** Of a machine that was just started: what was known of its engine is over. */
export const startingReason = "The machine was started and its engine has not reported yet.";
/** Of a service whose host is drained. */
export const heldReason = "The service is stopped for maintenance of its host, and starts by itself when that is over.";
export const silentReason = "The agent is silent.";

/** Pure: the service's health by its checks; `since` moves only when the status or the reason does. */
export function healthOf(service: ManagedServiceObject, observed: ObservedService, now: number): ServiceHealth {
  const before = service.status.health;
  const members = observed.nodes.filter(({ node }) => isStaying(node));
  const checks = [
    ...members.flatMap((node) => checksOf(service, node, now).map((check) => weighed(service, node, check))),
    ...[archivingCheck(service, observed, now)].filter((check) => check !== undefined),
  ].map((check) => keepSince(check, before.checks));
  const worst = checks.reduce<Level>(
    (level, check) => (rank(check.status) > rank(level) ? check.status : level),
    "healthy",
  );
  const status = checks.length === 0 ? "unknown" : worst;
  const reason = checks.find((check) => check.status === status && status !== "healthy")?.reason ?? "";
  const since = before.status === status && before.reason === reason ? before.since : now;
  return { status, since, reason, checks };
}

/** Without a replica a service is worse off, and it serves. */
function weighed(service: ManagedServiceObject, { node }: ObservedNode, check: HealthCheck): HealthCheck {
  if (isPrimary(service, node) || service.spec.power === "off" || check.status === "healthy") return check;
  return { ...check, status: "degraded" };
}

function rank(level: Level): number {
  return order.indexOf(level);
}

function keepSince(check: HealthCheck, before: readonly HealthCheck[]): HealthCheck {
  const same = before.find(
    (old) => old.name === check.name && old.nodeId === check.nodeId && old.status === check.status,
  );
  return same === undefined ? check : { ...check, since: Math.min(same.since, check.since) };
}

function checksOf(
  service: ManagedServiceObject,
  { node, machine, connected, instance, isCurrent, isHeld }: ObservedNode,
  now: number,
): HealthCheck[] {
  const one = (name: string, status: Level, reason: string): HealthCheck[] => [
    { name, nodeId: node.id, status, since: now, reason },
  ];
  if (service.spec.power === "off") return one("agent", "unknown", "The service is stopped.");
  if (isHeld) return one("agent", "unknown", heldReason);
  if (machine === undefined) return one("agent", "unknown", "The machine is being made.");
  if (service.metadata.deletionRequestedAt !== undefined && machine.status.reason !== "")
    return one("machine", "unknown", `The deletion waits: ${machine.status.reason}`);
  if (!connected) {
    if (machine.status.state === "unreachable") return one("machine", "unknown", machine.status.reason);
    if (machine.status.state === "failed") return one("machine", "unhealthy", machine.status.reason);
    return one("agent", "unknown", silentReason);
  }
  if (instance === undefined) return one("liveness", "unknown", "The engine is being set up.");
  if (!isCurrent) return one("liveness", "unknown", startingReason);
  if (instance.state !== "running") {
    const reason = instance.reason === "" ? `The engine is ${instance.state}.` : instance.reason;
    // The engine is up, but does not listen at an address of the service: clients do not reach it.
    const isLost = instance.checks.some(({ name, status }) => name === "listener" && status === "unhealthy");
    return one("liveness", instance.state === "failed" || isLost ? "unhealthy" : "unknown", reason);
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

/** Pure: what is shown of each node. */
export function nodeStatusesOf(service: ManagedServiceObject, observed: ObservedService): NodeStatus[] {
  return observed.nodes.map((node) => ({
    id: node.node.id,
    address: node.machine?.status.address ?? "",
    publicAddress: node.machine?.status.publicAddress ?? "",
    status: shownStatus(service, node),
  }));
}

function shownStatus(
  service: ManagedServiceObject,
  { machine, connected, instance, isCurrent, isHeld }: ObservedNode,
): NodeStatus["status"] {
  if (machine?.status.state === "failed" || instance?.state === "failed") return "Error";
  if (machine?.status.state === "stopped" && (service.spec.power === "off" || isHeld)) return "Stopped";
  if (connected && isCurrent && instance?.state === "running") return "Running";
  const wasUp = service.status.nodes.some((node) => node.id === machine?.metadata.id && node.status !== "Provisioning");
  // A node may fall silent before its engine was ever ready: a running machine without a session is unreachable too.
  const isThere = wasUp || machine?.status.state === "running";
  if (!connected && isThere && service.spec.power === "on" && service.status.state === "Running") return "Unreachable";
  return "Provisioning";
}
