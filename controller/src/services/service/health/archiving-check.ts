import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { HealthCheck, ManagedServiceObject } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import { taskTarget } from "../member/member-roles.ts";

const minuteMs = 60_000;
const degradedAfterMs = 5 * minuteMs;
const unhealthyAfterMs = 15 * minuteMs;

/**
 * The health check of log archiving: age of the newest recovery point, by the controller's clock, and size of the log
 * that is not stored yet. Undefined without an archive, and while the engine should not run, because then there is no
 * new log that could be lost.
 */
export function archivingCheck(
  service: ManagedServiceObject,
  observed: ObservedService,
  now: number,
): HealthCheck | undefined {
  const { newestRecoveryPoint } = observed;
  const primary = observed.nodes.find(({ node }) => node.id === taskTarget(service).id);
  if (newestRecoveryPoint === undefined || !isUp(service, primary)) return undefined;
  const ageMs = now - Math.max(newestRecoveryPoint, upSince(primary));
  const check = { name: "archiving", nodeId: taskTarget(service).id };
  const waiting = waitingReason(primary);
  if (ageMs < degradedAfterMs)
    return { ...check, status: waiting === undefined ? "healthy" : "degraded", since: now, reason: waiting ?? "" };
  const age = `The newest restorable time is ${new Date(newestRecoveryPoint).toISOString()}.`;
  const reason = waiting === undefined ? age : `${age} ${waiting}`;
  const isOld = ageMs >= unhealthyAfterMs;
  const since = now - ageMs + (isOld ? unhealthyAfterMs : degradedAfterMs);
  return { ...check, status: isOld ? "unhealthy" : "degraded", since, reason };
}

/** Milliseconds until the check changes without a new report; null if it does not. */
export function archivingRecheckInMs(
  service: ManagedServiceObject,
  observed: ObservedService,
  now: number,
): number | null {
  const { newestRecoveryPoint } = observed;
  const primary = observed.nodes.find(({ node }) => node.id === taskTarget(service).id);
  if (newestRecoveryPoint === undefined || !isUp(service, primary)) return null;
  const from = Math.max(newestRecoveryPoint, upSince(primary));
  const next = [degradedAfterMs, unhealthyAfterMs].map((afterMs) => from + afterMs - now).find((ms) => ms > 0);
  return next ?? null;
}

function isUp(service: ManagedServiceObject, primary: ObservedNode | undefined): primary is ObservedNode {
  const shouldRun = service.spec.power === "on" && service.metadata.deletionRequestedAt === undefined;
  return shouldRun && primary?.stoppedForDrain === false && primary.instance?.state === "running";
}

/**
 * A sentence about log that is not stored yet; undefined below half of its limit. The size is rounded to eighths of the
 * limit, so that the sentence does not change with each report.
 */
function waitingReason({ instance }: ObservedNode): string | undefined {
  const { waitingBytes = 0n, waitingLimitBytes = 0n } = instance?.archive ?? {};
  if (waitingLimitBytes === 0n || 2n * waitingBytes < waitingLimitBytes) return undefined;
  const eighths = (8n * waitingBytes) / waitingLimitBytes;
  const [least, limit] = [(eighths * waitingLimitBytes) / 8n, waitingLimitBytes].map((bytes) => bytes / 1_048_576n);
  return `At least ${least} MiB of log are not in the object store yet; at ${limit} MiB the log gets a gap.`;
}

/** Start of the engine, in milliseconds since 1970: before it there was no log to archive. */
function upSince({ instance }: ObservedNode): number {
  return instance?.since === undefined ? 0 : timestampMs(instance.since);
}
