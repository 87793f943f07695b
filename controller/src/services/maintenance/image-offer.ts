import { compareVersions } from "@holdfast/common/engine-catalog/compare-versions.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { hasImage } from "#fleet/host/host-images.ts";
import type { HostObject } from "#fleet/host/host.ts";
import { engineVersionIn, seriesNameOf, type NodeImageObject } from "./node-image.ts";

/**
 * The images (or guest kernels) of one series that machines on these hosts may change to, by the hosts' last reports.
 */
export interface ImageOffer {
  /** The newest image that all of these hosts have; undefined if it is the current one, or older. */
  readonly image: NodeImageObject | undefined;
  /** Time at which the last of the hosts got the image, in milliseconds since 1970. */
  readonly since: number;
  /** A newer image that some of the hosts lack; undefined if there is none. */
  readonly awaited: AwaitedImage | undefined;
}

export interface AwaitedImage {
  readonly image: NodeImageObject;
  /** Ids of the hosts that lack the image. */
  readonly missingOn: readonly string[];
}

/**
 * A series of images that can replace each other: one engine in one version, such as PostgreSQL 17, or the kernel of
 * virtual machines (`guestKernelSeries`).
 */
export interface ImageSeries {
  readonly engine: string;
  readonly version: string;
}

/** The newest image that all hosts of a service have, because all its machines run from one image. */
export function imageOffer(
  series: ImageSeries,
  current: string,
  images: readonly NodeImageObject[],
  hosts: readonly HostObject[],
): ImageOffer {
  if (hosts.length === 0) return { image: undefined, since: 0, awaited: undefined };
  const currentImage = images.find(({ metadata }) => metadata.id === current);
  const candidates = newestFirst(series, images);
  const candidate = candidates.find(({ metadata }) => hosts.every((host) => hasImage(host, metadata.id)));
  const isOther = candidate !== undefined && candidate.metadata.id !== current;
  const image =
    isOther && (currentImage === undefined || !isOlder(candidate, currentImage, series)) ? candidate : undefined;
  return {
    image,
    since: sinceOf(image, hosts),
    awaited: awaitedOf(series, image ?? currentImage, candidates[0], hosts),
  };
}

/** Ids of hosts that have images of the same series, but lack this image although it is the newest. */
export function missingOn(
  image: NodeImageObject,
  images: readonly NodeImageObject[],
  hosts: Iterable<HostObject>,
): string[] {
  const allSeries = image.spec.engines.filter(
    (series) => newestFirst(series, images)[0]?.metadata.id === image.metadata.id,
  );
  const needs = ({ status }: HostObject) =>
    status.images.some(
      (each) => each.available && each.image !== undefined && allSeries.some((series) => isOf(each, series)),
    );
  return [...hosts]
    .filter((host) => host.spec.destroyedAt === null && needs(host) && !hasImage(host, image.metadata.id))
    .map(({ metadata }) => metadata.id)
    .sort();
}

function isOf(a: ImageSeries, b: ImageSeries): boolean {
  return a.engine === b.engine && a.version === b.version;
}

function awaitedOf(
  series: ImageSeries,
  best: NodeImageObject | undefined,
  newest: NodeImageObject | undefined,
  hosts: readonly HostObject[],
): AwaitedImage | undefined {
  if (newest === undefined || (best !== undefined && byAge(series)(newest, best) >= 0)) return undefined;
  const missing = hosts.filter((host) => !hasImage(host, newest.metadata.id)).map(({ metadata }) => metadata.id);
  return missing.length === 0 ? undefined : { image: newest, missingOn: missing };
}

/** Time at which the last of the hosts got the image, as far as recorded, in milliseconds since 1970. */
function sinceOf(image: NodeImageObject | undefined, hosts: readonly HostObject[]): number {
  if (image === undefined) return 0;
  const { id, createdAt } = image.metadata;
  return Math.max(createdAt, ...hosts.map(({ status }) => lookUp(status.imageSince ?? {}, id) ?? 0));
}

/** Images of the series that new machines get on at least one host, newest first. */
function newestFirst(series: ImageSeries, images: readonly NodeImageObject[]): NodeImageObject[] {
  const name = seriesNameOf(series.engine, series.version);
  return images.filter(({ status }) => status.newestOf.includes(name)).sort(byAge(series));
}

/**
 * Order of images, newest first. Images that do not differ in version and build time are ordered by when they were
 * first seen.
 */
function byAge(series: ImageSeries): (a: NodeImageObject, b: NodeImageObject) => number {
  return (a, b) => {
    if (isOlder(a, b, series)) return 1;
    if (isOlder(b, a, series)) return -1;
    return b.metadata.createdAt - a.metadata.createdAt || (a.metadata.id < b.metadata.id ? -1 : 1);
  };
}

/** True if `a` is certainly older: by its engine's version, or else by the time it was built. */
function isOlder(a: NodeImageObject, b: NodeImageObject, { engine, version }: ImageSeries): boolean {
  const [versionOfA, versionOfB] = [engineVersionIn(a, engine, version), engineVersionIn(b, engine, version)];
  const versions = versionOfA === "" || versionOfB === "" ? 0 : compareVersions(versionOfA, versionOfB);
  if (versions !== 0) return versions < 0;
  return (a.spec.madeAt ?? 0) < (b.spec.madeAt ?? 0) && a.spec.madeAt !== undefined;
}
