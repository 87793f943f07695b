import type { RefusedImage } from "./maintenance-record.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ImageSeries, ImageOffer } from "./image-offer.ts";
import type { ImageUrgency, NodeImageObject } from "./node-image.ts";
import type { MaintenanceContext, PendingUpdate } from "./pending-update.ts";
import { applyAt, endOfNotice, obstacleOf, unreachableHostOf } from "./update-schedule.ts";

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
