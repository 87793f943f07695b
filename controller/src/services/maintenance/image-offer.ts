import { compareVersions } from "@holdfast/common/engine-catalog/compare-versions.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { hasImage } from "#fleet/host/host-images.ts";
import type { HostObject } from "#fleet/host/host.ts";
import { engineVersionIn, lineOf, type NodeImageObject } from "./node-image.ts";

/** What machines of one engine and version on these hosts can run from, or virtual ones boot from, by what the hosts told last. */
export interface ImageOffer {
  /** The newest that each of the hosts can give, if it is another than the one that they run from, and not older. */
  readonly image: NodeImageObject | undefined;
  /** Since when that is so; milliseconds since 1970. */
  readonly since: number;
  /** A newer image that some of the hosts lack. */
  readonly awaited: AwaitedImage | undefined;
}

export interface AwaitedImage {
  readonly image: NodeImageObject;
  /** Ids of hosts. */
  readonly missingOn: readonly string[];
}

/** An engine in one of its versions, or the kernel of virtual machines (guestLine). */
export interface ImageLine {
  readonly engine: string;
  readonly version: string;
}

/** Pure: all machines of a service run from one image, so only what every one of their hosts has is offered. */
export function imageOffer(
  line: ImageLine,
  current: string,
  images: readonly NodeImageObject[],
  hosts: readonly HostObject[],
): ImageOffer {
  if (hosts.length === 0) return { image: undefined, since: 0, awaited: undefined };
  const known = images.find(({ metadata }) => metadata.id === current);
  const candidates = newestFirst(line, images);
  const given = candidates.find(({ metadata }) => hosts.every((host) => hasImage(host, metadata.id)));
  const isOther = given !== undefined && given.metadata.id !== current;
  const image = isOther && (known === undefined || !isOlder(given, known, line)) ? given : undefined;
  return { image, since: sinceOf(image, hosts), awaited: awaitedOf(line, image ?? known, candidates[0], hosts) };
}

/** Pure: hosts with this engine and version that have not got the image though it is the newest of all; ids. */
export function missingOn(
  image: NodeImageObject,
  images: readonly NodeImageObject[],
  hosts: Iterable<HostObject>,
): string[] {
  const lines = image.spec.engines.filter((line) => newestFirst(line, images)[0]?.metadata.id === image.metadata.id);
  const needs = ({ status }: HostObject) =>
    status.images.some((each) => each.available && each.image !== undefined && lines.some((line) => isOf(each, line)));
  return [...hosts]
    .filter((host) => host.spec.destroyedAt === null && needs(host) && !hasImage(host, image.metadata.id))
    .map(({ metadata }) => metadata.id)
    .sort();
}

function isOf(a: ImageLine, b: ImageLine): boolean {
  return a.engine === b.engine && a.version === b.version;
}

function awaitedOf(
  line: ImageLine,
  best: NodeImageObject | undefined,
  newest: NodeImageObject | undefined,
  hosts: readonly HostObject[],
): AwaitedImage | undefined {
  if (newest === undefined || (best !== undefined && byAge(line)(newest, best) >= 0)) return undefined;
  const missing = hosts.filter((host) => !hasImage(host, newest.metadata.id)).map(({ metadata }) => metadata.id);
  return missing.length === 0 ? undefined : { image: newest, missingOn: missing };
}

/** Since when the last of the hosts has it, as far as it was noted. */
function sinceOf(image: NodeImageObject | undefined, hosts: readonly HostObject[]): number {
  if (image === undefined) return 0;
  const { id, createdAt } = image.metadata;
  return Math.max(createdAt, ...hosts.map(({ status }) => lookUp(status.imageSince ?? {}, id) ?? 0));
}

/** Images that are the newest of some host, as new machines get them. */
function newestFirst(line: ImageLine, images: readonly NodeImageObject[]): NodeImageObject[] {
  const name = lineOf(line.engine, line.version);
  return images.filter(({ status }) => status.newestOf.includes(name)).sort(byAge(line));
}

/** The newer one first. Of two that do not differ in what is known of them, the one that was seen later is newer. */
function byAge(line: ImageLine): (a: NodeImageObject, b: NodeImageObject) => number {
  return (a, b) => {
    if (isOlder(a, b, line)) return 1;
    if (isOlder(b, a, line)) return -1;
    return b.metadata.createdAt - a.metadata.createdAt || (a.metadata.id < b.metadata.id ? -1 : 1);
  };
}

/** Is it certain that `a` is older: by its engine's version, or else by when it was made first? */
function isOlder(a: NodeImageObject, b: NodeImageObject, { engine, version }: ImageLine): boolean {
  const [one, other] = [engineVersionIn(a, engine, version), engineVersionIn(b, engine, version)];
  const versions = one === "" || other === "" ? 0 : compareVersions(one, other);
  if (versions !== 0) return versions < 0;
  return (a.spec.madeAt ?? 0) < (b.spec.madeAt ?? 0) && a.spec.madeAt !== undefined;
}
