import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { HealthCheck, ManagedServiceObject } from "./managed-service.ts";
import type { ObservedNode, ObservedService } from "./observed-service.ts";

const minuteMs = 60_000;
const degradedAfterMs = 5 * minuteMs;
const unhealthyAfterMs = 15 * minuteMs;

/**
 * Pure: how old the newest moment that the service can be restored to is, by the controller's clock, and how much log waits for the
 * object store. Undefined without an archive of its log, and while its engine is not to run: then nothing is written that could be
 * lost.
 */
export function archivingCheck(
  service: ManagedServiceObject,
  observed: ObservedService,
  now: number,
): HealthCheck | undefined {
  const { newestPoint } = observed;
  const primary = observed.nodes.find(({ node }) => node.id === service.status.primaryNodeId);
  if (newestPoint === undefined || !isUp(service, primary)) return undefined;
  const ageMs = now - Math.max(newestPoint, upSince(primary));
  const check = { name: "archiving", nodeId: service.status.primaryNodeId };
  const waiting = waitingReason(primary);
  if (ageMs < degradedAfterMs)
    return { ...check, status: waiting === undefined ? "healthy" : "degraded", since: now, reason: waiting ?? "" };
  const age = `The newest moment that it can be restored to is ${new Date(newestPoint).toISOString()}.`;
  const reason = waiting === undefined ? age : `${age} ${waiting}`;
  const isOld = ageMs >= unhealthyAfterMs;
  const since = now - ageMs + (isOld ? unhealthyAfterMs : degradedAfterMs);
  return { ...check, status: isOld ? "unhealthy" : "degraded", since, reason };
}

/** Pure: in how many milliseconds the check says something else though nobody tells anything; null when it never does. */
export function archivingDueInMs(service: ManagedServiceObject, observed: ObservedService, now: number): number | null {
  const { newestPoint } = observed;
  const primary = observed.nodes.find(({ node }) => node.id === service.status.primaryNodeId);
  if (newestPoint === undefined || !isUp(service, primary)) return null;
  const from = Math.max(newestPoint, upSince(primary));
  const next = [degradedAfterMs, unhealthyAfterMs].map((afterMs) => from + afterMs - now).find((ms) => ms > 0);
  return next ?? null;
}

function isUp(service: ManagedServiceObject, primary: ObservedNode | undefined): primary is ObservedNode {
  const isWanted = service.spec.power === "on" && service.metadata.deletionRequestedAt === undefined;
  return isWanted && primary?.isHeld === false && primary.instance?.state === "running";
}

/**
 * Undefined while less than half of what the engine keeps waits. It speaks of eighths, so that it is not another one with each
 * look.
 */
function waitingReason({ instance }: ObservedNode): string | undefined {
  const { waitingBytes = 0n, waitingLimitBytes = 0n } = instance?.archive ?? {};
  if (waitingLimitBytes === 0n || 2n * waitingBytes < waitingLimitBytes) return undefined;
  const eighths = (8n * waitingBytes) / waitingLimitBytes;
  const [least, limit] = [(eighths * waitingLimitBytes) / 8n, waitingLimitBytes].map((bytes) => bytes / 1_048_576n);
  return `At least ${least} MiB of log wait for the object store, and at ${limit} MiB the log has a gap.`;
}

/** An engine that was off has nothing newer to archive than what it does from now on. */
function upSince({ instance }: ObservedNode): number {
  return instance?.since === undefined ? 0 : timestampMs(instance.since);
}
