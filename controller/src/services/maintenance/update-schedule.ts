import { isUnreachable } from "#fleet/host/host.ts";
import type { ImageSeries, ImageOffer } from "./image-offer.ts";
import type { RefusedImage } from "./maintenance-record.ts";
import { defaultWindow, startInWindow } from "./maintenance-window.ts";
import type { HealthCheck, ManagedServiceObject, ServiceHealth } from "../service/managed-service.ts";
import type { ImageUrgency, NodeImageObject } from "./node-image.ts";
import type { MaintenanceContext, PendingUpdate } from "./pending-update.ts";

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
function endOfNotice({ markedAt, noticeHours }: ImageUrgency): number {
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

/** An image or kernel that a service may change to. */
export interface OfferedImage {
  readonly series: ImageSeries;
  readonly target: NodeImageObject;
  /** The image that it replaces; undefined if unknown. */
  readonly currentImage: NodeImageObject | undefined;
  readonly since: ImageOffer["since"];
  /** The image that was last tried and rolled back; null if there is none. */
  readonly refused: RefusedImage | null;
  /** Reason why the image is applied only on request; empty if it may be applied automatically. */
  readonly onlyByRequest: string;
}

/** Time and conditions of an update. */
export type UpdateSchedule = Pick<
  PendingUpdate,
  "urgent" | "availableSince" | "applyAt" | "requiresRestart" | "blocked" | "snapshotProblem"
> & {
  /** Sentence with the reason of the urgency, to append to a description; empty if the update is not urgent. */
  readonly urgencyText: string;
};

/** Time and conditions of an update to this image. */
export function imageSchedule(
  service: ManagedServiceObject,
  context: MaintenanceContext,
  { series, target, currentImage, since, refused, onlyByRequest }: OfferedImage,
): UpdateSchedule {
  const urgency = urgencyOf(target, currentImage, series, context.images);
  const failedBefore =
    refused?.image === target.metadata.id
      ? `It was rolled back: ${refused.message} It is not applied automatically again; apply it to try once more.`
      : "";
  const reasons = [onlyByRequest, failedBefore].filter((reason) => reason !== "");
  const blocked = reasons.length > 0 ? reasons.join(" ") : (obstacleOf(service, context) ?? unreachableHostOf(context));
  return {
    urgent: urgency !== undefined,
    availableSince: since,
    applyAt: reasons.length === 0 ? applyAt(service, since, urgency, context.now) : null,
    requiresRestart: true,
    blocked: blocked ?? null,
    snapshotProblem: context.snapshotProblem === "" ? null : context.snapshotProblem,
    urgencyText: urgency === undefined ? "" : ` Urgent: ${urgency.reason}`,
  };
}

/** The urgency of an image applies to every newer image, with the shortest notice. */
function urgencyOf(
  target: NodeImageObject,
  current: NodeImageObject | undefined,
  series: ImageSeries,
  images: readonly NodeImageObject[],
): ImageUrgency | undefined {
  const after = current?.metadata.createdAt ?? 0;
  const isBetween = ({ metadata, spec: { engines } }: NodeImageObject) =>
    metadata.id === target.metadata.id ||
    (metadata.createdAt > after &&
      metadata.createdAt <= target.metadata.createdAt &&
      engines.some(({ engine, version }) => engine === series.engine && version === series.version));
  const found = images.filter(isBetween).flatMap(({ spec: { urgent } }) => (urgent === null ? [] : [urgent]));
  return found.sort((a, b) => endOfNotice(a) - endOfNotice(b))[0];
}
