import { lookUp } from "@holdfast/common/look-up.ts";
import type { ImageFacts } from "@holdfast/compute/compute-provider.ts";
import type { Software } from "../machine/machine.ts";
import type { HostObject, HostStatus } from "./host.ts";

/** True if the host has the image or can rebuild it, according to its last report. */
export function hasImage({ status: { facts, images } }: HostObject, image: string): boolean {
  return facts?.imageIds.includes(image) === true || images.some((each) => each.image === image);
}

/** The last reported image with this software for the host's new machines; undefined if it reported none. */
export function imageOf({ status }: HostObject, { name, version }: Software): ImageFacts | undefined {
  return status.images.find((each) => each.engine === name && each.version === version);
}

/** Id of the available image with this software for the host's new machines; empty if the host reported none. */
export function newestImageOn(host: HostObject, software: Software): string {
  const found = imageOf(host, software);
  return (found?.available === true ? found.image : undefined) ?? "";
}

/** The host's state and images as one string, which readers compare to detect a change. */
export function imagesFingerprint({ status: { state, facts, images } }: HostObject): string {
  return [state, ...(facts?.imageIds ?? []), ...images.map(({ image = "" }) => image)].join();
}

/** Time since which each image is the host's newest of its engine and version, by image id, in ms since 1970. */
export function newestSince(
  before: Pick<HostStatus, "images" | "imageSince">,
  images: HostStatus["images"],
  now: number,
): Readonly<Record<string, number>> {
  const seen = new Set(before.images.map(({ image }) => image));
  const ids = new Set(images.flatMap(({ image = "" }) => (image === "" ? [] : [image])));
  return Object.fromEntries(
    [...ids].flatMap((id) => {
      const since = seen.has(id) ? lookUp(before.imageSince ?? {}, id) : now;
      return since === undefined ? [] : [[id, since] as const];
    }),
  );
}
