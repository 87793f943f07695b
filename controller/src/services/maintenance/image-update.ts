import { versionNumber } from "#catalog/version-number.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { type ImageOffer, imageOffer } from "./image-offer.ts";
import { imageTerms } from "./image-terms.ts";
import { engineVersionIn } from "./node-image.ts";
import type { MaintenanceWorld, PendingUpdate } from "./pending-update.ts";
import { changedTextOrder, textOrderReason } from "./text-order.ts";

/** Pure: what the service is offered in the place of its image; undefined where engines of the host run. */
export function imageOfferTo(service: ManagedServiceObject, world: MaintenanceWorld): ImageOffer | undefined {
  const current = imageOf(service, world);
  return current === "" ? undefined : imageOffer(lineOfEngine(service), current, world.images, world.hosts);
}

/** Pure: the newer image that waits for the service, if there is one. */
export function imageUpdate(service: ManagedServiceObject, world: MaintenanceWorld): PendingUpdate | undefined {
  const { image: target, since = 0 } = imageOfferTo(service, world) ?? {};
  if (target === undefined) return undefined;
  const { engine, version } = lineOfEngine(service);
  const current = imageOf(service, world);
  const to = engineVersionIn(target, engine, version);
  const known = world.images.find(({ metadata }) => metadata.id === current);
  const from = engineVersionIn(known, engine, version) || versionNumber(world.instance?.engineVersion ?? "");
  const isMinor = from !== "" && to !== "" && from !== to;
  const reordered = changedTextOrder(known, target, world.instance);
  const changesTextOrder = reordered.length > 0;
  const { why, ...terms } = imageTerms(service, world, {
    line: { engine, version },
    target,
    known,
    since,
    refused: service.status.maintenance.refused,
    onlyByRequest: changesTextOrder ? textOrderReason(reordered) : "",
  });
  return {
    id: target.metadata.id,
    kind: isMinor ? "engine_minor" : "image",
    title: isMinor ? `${engine} ${from} to ${to}` : "Newer packages of the operating system",
    description: isMinor
      ? `The engine is stopped in order and started from an image with ${engine} ${to}, over the same data. If it does not come up, ${from} is put back.${why}`
      : `The engine is stopped in order and started from an image with newer packages and the same engine, over the same data.${why}`,
    from: isMinor ? from : current,
    to: isMinor ? to : target.metadata.id,
    changesTextOrder,
    ...terms,
  };
}

function lineOfEngine({ spec }: ManagedServiceObject) {
  return { engine: spec.databaseType, version: spec.version };
}

function imageOf({ spec }: ManagedServiceObject, { image }: MaintenanceWorld): string {
  return spec.image === "" ? image : spec.image;
}
