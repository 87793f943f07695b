import type { RefusedImage } from "../service/maintenance-memory.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ImageLine, ImageOffer } from "./image-offer.ts";
import type { ImageUrgency, NodeImageObject } from "./node-image.ts";
import type { MaintenanceWorld, PendingUpdate } from "./pending-update.ts";
import { applyAt, endOfNotice, obstacleOf, silenceOf } from "./update-terms.ts";

/** An image, or a kernel, that a service is offered in the place of another. */
export interface Newcomer {
  readonly line: ImageLine;
  readonly target: NodeImageObject;
  /** The one that it replaces; undefined when nothing is known of it. */
  readonly known: NodeImageObject | undefined;
  readonly since: ImageOffer["since"];
  /** What was tried last and rolled back. */
  readonly refused: RefusedImage | null;
  /** Why only a request may begin it; empty when it may begin by itself. */
  readonly onlyByRequest: string;
}

/** When it comes, and what stands against it. */
export type ImageTerms = Pick<
  PendingUpdate,
  "urgent" | "availableSince" | "applyAt" | "requiresRestart" | "blocked" | "noSnapshot"
> & {
  /** Why it is urgent, to follow a description; empty when it is not. */
  readonly why: string;
};

/** Pure: the terms on which it comes. */
export function imageTerms(
  service: ManagedServiceObject,
  world: MaintenanceWorld,
  { line, target, known, since, refused, onlyByRequest }: Newcomer,
): ImageTerms {
  const urgency = urgencyOf(target, known, line, world.images);
  const failedBefore =
    refused?.image === target.metadata.id
      ? `It was tried and rolled back: ${refused.message} It is not tried again by itself; apply it to try once more.`
      : "";
  const notByItself = [onlyByRequest, failedBefore].filter((why) => why !== "");
  const blocked = notByItself.length > 0 ? notByItself.join(" ") : (obstacleOf(service, world) ?? silenceOf(world));
  return {
    urgent: urgency !== undefined,
    availableSince: since,
    applyAt: notByItself.length === 0 ? applyAt(service, since, urgency, world.now) : null,
    requiresRestart: true,
    blocked: blocked ?? null,
    noSnapshot: world.noSnapshots === "" ? null : world.noSnapshots,
    why: urgency === undefined ? "" : ` Urgent: ${urgency.reason}`,
  };
}

/** What was marked urgent stays so in every newer image. The shortest notice counts. */
function urgencyOf(
  target: NodeImageObject,
  current: NodeImageObject | undefined,
  line: ImageLine,
  images: readonly NodeImageObject[],
): ImageUrgency | undefined {
  const after = current?.metadata.createdAt ?? 0;
  const isBetween = ({ metadata, spec: { engines } }: NodeImageObject) =>
    metadata.id === target.metadata.id ||
    (metadata.createdAt > after &&
      metadata.createdAt <= target.metadata.createdAt &&
      engines.some(({ engine, version }) => engine === line.engine && version === line.version));
  const found = images.filter(isBetween).flatMap(({ spec: { urgent } }) => (urgent === null ? [] : [urgent]));
  return found.sort((a, b) => endOfNotice(a) - endOfNotice(b))[0];
}
