import { isSilent } from "#fleet/host/host.ts";
import { defaultWindow, startInWindow } from "../service/maintenance-window.ts";
import type { HealthCheck, ManagedServiceObject, ServiceHealth } from "../service/managed-service.ts";
import type { ImageUrgency } from "./node-image.ts";
import type { MaintenanceWorld } from "./pending-update.ts";

const hourMs = 3_600_000;
/** Ordinary updates are known for so long before they are applied by themselves. */
const ordinaryNoticeMs = 24 * hourMs;
/** What an engine needs to come up and take a write: a segment of its log, and some. */
const freeBytesMin = 64 << 20;

/** Pure: in the first window after a day's notice; an urgent one at its notice's end if that comes first, window or not. */
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

/** Pure: when an urgent image waits no longer; milliseconds since 1970. */
export function endOfNotice({ markedAt, noticeHours }: ImageUrgency): number {
  return markedAt + noticeHours * hourMs;
}

/** Pure: why nothing may be done to the service now; undefined when it may. */
export function obstacleOf({ spec, status }: ManagedServiceObject, { instance }: MaintenanceWorld): string | undefined {
  if (status.state === "Stopped" || spec.power === "off") return "The service is stopped. Start it first.";
  if (status.state !== "Running") return `The service is ${status.state}. It must be Running.`;
  if (!isHealthy(status.health))
    return `The service is ${status.health.status}: ${status.health.reason} It must be healthy, so that an update that does it harm is noticed.`;
  const measured = instance !== undefined && instance.freeBytes + instance.dataBytes > 0n;
  if (measured && instance.freeBytes < freeBytesMin)
    return `Its disk has less than ${freeBytesMin >> 20} MiB free. Make room first.`;
  return undefined;
}

/** An invalid database is as it is under every image, and what else is wrong is noticed beside it. */
function isHealthy({ status, checks }: ServiceHealth): boolean {
  const isAboutDatabases = ({ name }: HealthCheck) => name === "databases";
  const found = checks.filter((check) => check.status !== "healthy");
  return status === "healthy" || (found.length > 0 && found.every(isAboutDatabases));
}

/** Pure: why no image can come under its data now; undefined when it can. Its engine may run on all the while. */
export function silenceOf({ hosts }: MaintenanceWorld): string | undefined {
  const silent = hosts.find(isSilent);
  return silent && `Host ${silent.metadata.id} of its machines does not answer. It waits until it does.`;
}
