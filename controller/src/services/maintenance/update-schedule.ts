import { isUnreachable } from "#fleet/host/host.ts";
import { defaultWindow, startInWindow } from "./maintenance-window.ts";
import type { HealthCheck, ManagedServiceObject, ServiceHealth } from "../service/managed-service.ts";
import type { ImageUrgency } from "./node-image.ts";
import type { MaintenanceContext } from "./pending-update.ts";

const hourMs = 3_600_000;
/** Notice of ordinary updates before they are applied automatically. */
const ordinaryNoticeMs = 24 * hourMs;
/** Minimum free disk space for an engine to start and take a write: a log segment and a margin. */
const minFreeBytes = 64 << 20;

/**
 * Time at which an update is applied: the start in the first window after a day's notice, or the end of an urgent
 * image's notice if that is earlier. Milliseconds since 1970.
 */
export function applyAt(
  service: ManagedServiceObject,
  availableSince: number,
  urgency: ImageUrgency | undefined,
  now: number,
): number {
  const { id } = service.metadata;
  const window = service.spec.maintenanceWindow ?? defaultWindow(id);
  const ordinary = startInWindow(window, id, availableSince + ordinaryNoticeMs, now);
  if (urgency === undefined) return ordinary;
  return Math.min(ordinary, endOfNotice(urgency));
}

/** End of an urgent image's notice, in milliseconds since 1970. */
export function endOfNotice({ markedAt, noticeHours }: ImageUrgency): number {
  return markedAt + noticeHours * hourMs;
}

/** Reason why no update can be applied now; undefined if there is no obstacle. */
export function obstacleOf(
  { spec, status }: ManagedServiceObject,
  { instance }: MaintenanceContext,
): string | undefined {
  if (status.state === "Stopped" || spec.power === "off") return "The service is stopped. Start it first.";
  if (status.state !== "Running") return `The service is ${status.state}. It must be Running.`;
  if (!isHealthy(status.health))
    return `The service is ${status.health.status}: ${status.health.reason} It must be healthy, so that an update that harms it is detected.`;
  const measured = instance !== undefined && instance.freeBytes + instance.dataBytes > 0n;
  if (measured && instance.freeBytes < minFreeBytes)
    return `The disk of the service has less than ${minFreeBytes >> 20} MiB free. Free space first.`;
  return undefined;
}

/** Checks of what users did or do inside of the engine, which does not depend on the image. */
const usersChecks: readonly string[] = ["databases", "logical_slots"];

/** True if the service is healthy, except for invalid databases and consumers that are behind. */
function isHealthy({ status, checks }: ServiceHealth): boolean {
  const isOfUsers = ({ name }: HealthCheck) => usersChecks.includes(name);
  const found = checks.filter((check) => check.status !== "healthy");
  return status === "healthy" || (found.length > 0 && found.every(isOfUsers));
}

/** Reason why the image cannot be changed while a host does not respond; undefined if all hosts respond. */
export function unreachableHostOf({ hosts }: MaintenanceContext): string | undefined {
  const silent = hosts.find(isUnreachable);
  return silent && `Host ${silent.metadata.id} of its machines does not respond. The update waits until it does.`;
}
