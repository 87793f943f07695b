import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { versionNumber } from "../catalog/version-number.ts";
import type { ManagedServiceObject } from "../managed-service/managed-service.ts";
import { type HostObject, isSilent } from "../host/host.ts";
import { type AwaitedImage, type ImageOffer, imageOffer } from "./image-offer.ts";
import { defaultWindow, startInWindow } from "../managed-service/maintenance-window.ts";
import { changedTextOrder, textOrderReason } from "./text-order.ts";
import { engineVersionIn, type ImageUrgency, type NodeImageObject } from "./node-image.ts";

const hourMs = 3_600_000;

/** Ordinary updates are known for so long before they are applied by themselves. */
const ordinaryNoticeMs = 24 * hourMs;
/** What an engine needs to come up and take a write: a segment of its log, and some. */
const freeBytesMin = 64 << 20;

export type UpdateKind = "engine_minor" | "image" | "restart";

/** One thing that waits to be done to a service. */
export interface PendingUpdate {
  /** Of an image its id; `restart` for parameters that wait for a restart. */
  readonly id: string;
  readonly kind: UpdateKind;
  readonly title: string;
  readonly description: string;
  /** Engine versions or images; null for a restart. */
  readonly from: string | null;
  readonly to: string | null;
  readonly urgent: boolean;
  readonly availableSince: number;
  /** When it begins by itself; null while something stands against that. A past time: as soon as its turn comes. */
  readonly applyAt: number | null;
  readonly requiresRestart: boolean;
  /** Indexes over text may have to be made again after it: only who says so gets it. */
  readonly changesTextOrder: boolean;
  /** What stands against it now, in words that a user can act on. */
  readonly blocked: string | null;
  /** Why the data cannot be taken back with it; null when they can, and where nothing would change them. */
  readonly noSnapshot: string | null;
}

/** What updates are worked out from, besides the service. */
export interface MaintenanceWorld {
  readonly images: readonly NodeImageObject[];
  /** Those that the service's machines are on, each once, as they are or were last heard of. */
  readonly hosts: readonly HostObject[];
  /** Image that the service's machines run from; empty where engines of the host run, and before there is one. */
  readonly image: string;
  /** What the primary's agent last told since its machine's start. */
  readonly instance: InstanceObservation | undefined;
  /** Why the tier that its data are in has no snapshots; empty where it has, and where that is not known. */
  readonly noSnapshots: string;
  readonly now: number;
}

export const restartId = "restart";

/** Pure: what waits to be done to the service, an image first. Empty while it is deleted. */
export function pendingUpdates(service: ManagedServiceObject, world: MaintenanceWorld): PendingUpdate[] {
  if (service.metadata.deletionRequestedAt !== undefined) return [];
  const image = imageUpdate(service, world);
  const restart = restartUpdate(service, world);
  return [...(image === undefined ? [] : [image]), ...(restart === undefined ? [] : [restart])];
}

/** Pure: an image that is newer than what the hosts of the service's machines can give it; undefined when there is none. */
export function awaitedImage(service: ManagedServiceObject, world: MaintenanceWorld): AwaitedImage | undefined {
  return service.metadata.deletionRequestedAt === undefined ? offerTo(service, world)?.awaited : undefined;
}

function offerTo({ spec }: ManagedServiceObject, { image, images, hosts }: MaintenanceWorld): ImageOffer | undefined {
  const current = spec.image === "" ? image : spec.image;
  if (current === "") return undefined;
  return imageOffer({ engine: spec.databaseType, version: spec.version }, current, images, hosts);
}

function imageUpdate(service: ManagedServiceObject, world: MaintenanceWorld): PendingUpdate | undefined {
  const { databaseType: engine, version } = service.spec;
  const offer = offerTo(service, world);
  const target = offer?.image;
  if (target === undefined) return undefined;
  const current = service.spec.image === "" ? world.image : service.spec.image;
  const to = engineVersionIn(target, engine, version);
  const known = world.images.find(({ metadata }) => metadata.id === current);
  const from = engineVersionIn(known, engine, version) || versionNumber(world.instance?.engineVersion ?? "");
  const isMinor = from !== "" && to !== "" && from !== to;
  const urgency = urgencyOf(target, known, service, world.images);
  const { refused } = service.status.maintenance;
  const failedBefore =
    refused?.image === target.metadata.id
      ? `It was tried and taken back: ${refused.message} It is not tried again by itself; apply it to try once more.`
      : undefined;
  const reordered = changedTextOrder(known, target, world.instance);
  const changesTextOrder = reordered.length > 0;
  const notByItself = [changesTextOrder ? textOrderReason(reordered) : "", failedBefore ?? ""].filter(
    (why) => why !== "",
  );
  const blocked = notByItself.length > 0 ? notByItself.join(" ") : (obstacleOf(service, world) ?? silenceOf(world));
  const availableSince = offer?.since ?? target.metadata.createdAt;
  const ordinary = { availableSince, urgent: urgency !== undefined };
  const why = urgency === undefined ? "" : ` Urgent: ${urgency.reason}`;
  return {
    id: target.metadata.id,
    kind: isMinor ? "engine_minor" : "image",
    title: isMinor ? `${engine} ${from} to ${to}` : "Newer packages of the operating system",
    description: isMinor
      ? `The engine is stopped in order and started from an image with ${engine} ${to}, over the same data. If it does not come up, ${from} is put back.${why}`
      : `The engine is stopped in order and started from an image with newer packages and the same engine, over the same data.${why}`,
    from: isMinor ? from : current,
    to: isMinor ? to : target.metadata.id,
    ...ordinary,
    applyAt: notByItself.length === 0 ? applyAt(service, ordinary.availableSince, urgency, world.now) : null,
    requiresRestart: true,
    changesTextOrder,
    blocked: blocked ?? null,
    noSnapshot: world.noSnapshots === "" ? null : world.noSnapshots,
  };
}

function restartUpdate(service: ManagedServiceObject, world: MaintenanceWorld): PendingUpdate | undefined {
  const parameters = parametersThatWait(world.instance);
  if (parameters.length === 0) return undefined;
  const availableSince = service.status.maintenance.restartSince ?? world.now;
  return {
    id: restartId,
    kind: "restart",
    title: parameters.length === 1 ? `Restart for ${parameters[0]}` : `Restart for ${parameters.length} parameters`,
    description: `These parameters take effect when the engine is restarted: ${parameters.join(", ")}.`,
    from: null,
    to: null,
    urgent: false,
    availableSince,
    applyAt: applyAt(service, availableSince, undefined, world.now),
    requiresRestart: true,
    changesTextOrder: false,
    blocked: obstacleOf(service, world) ?? null,
    noSnapshot: null,
  };
}

/** Parameters that the running engine has been told and takes at its next start. */
export function parametersThatWait(instance: InstanceObservation | undefined): readonly string[] {
  return instance?.state === "running" ? instance.pendingRestart : [];
}

/** In the first window after a day's notice; an urgent one at its notice's end if that comes first, window or not. */
function applyAt(
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

/** What was marked urgent stays so in every newer image. The shortest notice counts. */
function urgencyOf(
  target: NodeImageObject,
  current: NodeImageObject | undefined,
  { spec }: ManagedServiceObject,
  images: readonly NodeImageObject[],
): ImageUrgency | undefined {
  const after = current?.metadata.createdAt ?? 0;
  const isBetween = ({ metadata, spec: { engines } }: NodeImageObject) =>
    metadata.id === target.metadata.id ||
    (metadata.createdAt > after &&
      metadata.createdAt <= target.metadata.createdAt &&
      engines.some(({ engine, version }) => engine === spec.databaseType && version === spec.version));
  const found = images.filter(isBetween).flatMap(({ spec: { urgent } }) => (urgent === null ? [] : [urgent]));
  return found.sort((a, b) => endOfNotice(a) - endOfNotice(b))[0];
}

function endOfNotice({ markedAt, noticeHours }: ImageUrgency): number {
  return markedAt + noticeHours * hourMs;
}

/** Why nothing may be done to the service now; undefined when it may. */
export function obstacleOf({ spec, status }: ManagedServiceObject, { instance }: MaintenanceWorld): string | undefined {
  if (status.state === "Stopped" || spec.power === "off") return "The service is stopped. Start it first.";
  if (status.state !== "Running") return `The service is ${status.state}. It must be Running.`;
  if (status.health.status !== "healthy")
    return `The service is ${status.health.status}: ${status.health.reason} It must be healthy, so that an update that does it harm is noticed.`;
  const measured = instance !== undefined && instance.freeBytes + instance.dataBytes > 0n;
  if (measured && instance.freeBytes < freeBytesMin)
    return `Its disk has less than ${freeBytesMin >> 20} MiB free. Make room first.`;
  return undefined;
}

/** Why no image can come under its data now; undefined when it can. Its engine may run on all the while. */
export function silenceOf({ hosts }: MaintenanceWorld): string | undefined {
  const silent = hosts.find(isSilent);
  return silent && `Host ${silent.metadata.id} of its machines does not answer. It waits until it does.`;
}
