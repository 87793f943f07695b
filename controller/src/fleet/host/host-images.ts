import { lookUp } from "@holdfast/common/look-up.ts";
import type { HostObject, HostStatus } from "./host.ts";

/** By what the host told last: can it give machines this image, because it is there or can be made again there? */
export function hasImage({ status: { facts, images } }: HostObject, image: string): boolean {
  return facts?.imageIds.includes(image) === true || images.some((each) => each.image === image);
}

/** Id of the image that its new machines of this engine and version get; empty where that is not known. */
export function newestOn({ status }: HostObject, engine: string, version: string): string {
  const found = status.images.find((each) => each.engine === engine && each.version === version);
  return (found?.available === true ? found.image : undefined) ?? "";
}

/** What services on the host read of it for their updates, in one text: another one when something of it changed. */
export function imagesInShort({ status: { state, facts, images } }: HostObject): string {
  return [state, ...(facts?.imageIds ?? []), ...images.map(({ image = "" }) => image)].join();
}

/** Pure: since when each image is the newest of something there; nothing about those that were before anybody noted it. */
export function sinceOf(
  before: Pick<HostStatus, "images" | "imageSince">,
  images: HostStatus["images"],
  now: number,
): Readonly<Record<string, number>> {
  const known = new Set(before.images.map(({ image }) => image));
  const ids = new Set(images.flatMap(({ image = "" }) => (image === "" ? [] : [image])));
  return Object.fromEntries(
    [...ids].flatMap((id) => {
      const since = known.has(id) ? lookUp(before.imageSince ?? {}, id) : now;
      return since === undefined ? [] : [[id, since] as const];
    }),
  );
}
