import { lookUp } from "@holdfast/common/look-up.ts";
import { versionNumber } from "#catalog/version-number.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { type ImageOffer, imageOffer } from "./image-offer.ts";
import { imageSchedule } from "./update-schedule.ts";
import { engineVersionIn, type NodeImageObject } from "./node-image.ts";
import type { MaintenanceContext, PendingUpdate } from "./pending-update.ts";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";

/** The images that the service may change to; undefined if its engines run on the host, without an image. */
export function imageOfferTo(service: ManagedServiceObject, context: MaintenanceContext): ImageOffer | undefined {
  const current = imageOf(service, context);
  return current === "" ? undefined : imageOffer(seriesOfEngine(service), current, context.images, context.hosts);
}

/** The pending update of the service's image, if any. */
export function imageUpdate(service: ManagedServiceObject, context: MaintenanceContext): PendingUpdate | undefined {
  const { image: target, since = 0 } = imageOfferTo(service, context) ?? {};
  if (target === undefined) return undefined;
  const { engine, version } = seriesOfEngine(service);
  const current = imageOf(service, context);
  const to = engineVersionIn(target, engine, version);
  const currentImage = context.images.find(({ metadata }) => metadata.id === current);
  const from = engineVersionIn(currentImage, engine, version) || versionNumber(context.instance?.engineVersion ?? "");
  const isMinor = from !== "" && to !== "" && from !== to;
  const changedLibraries = changedTextOrder(currentImage, target, context.instance);
  const changesTextOrder = changedLibraries.length > 0;
  const { urgencyText, ...schedule } = imageSchedule(service, context, {
    series: { engine, version },
    target,
    currentImage,
    since,
    refused: service.status.maintenance.refused,
    onlyByRequest: changesTextOrder ? textOrderReason(changedLibraries) : "",
  });
  return {
    id: target.metadata.id,
    kind: isMinor ? "engine_minor" : "image",
    title: isMinor ? `${engine} ${from} to ${to}` : "Newer packages of the operating system",
    description: isMinor
      ? `The engine is shut down cleanly and started from an image with ${engine} ${to}, with the same data. If it does not start, ${from} is restored.${urgencyText}`
      : `The engine is shut down cleanly and started from an image with newer packages and the same engine, with the same data.${urgencyText}`,
    from: isMinor ? from : current,
    to: isMinor ? to : target.metadata.id,
    changesTextOrder,
    ...schedule,
  };
}

function seriesOfEngine({ spec }: ManagedServiceObject) {
  return { engine: spec.databaseType, version: spec.version };
}

function imageOf({ spec }: ManagedServiceObject, { image }: MaintenanceContext): string {
  return spec.image === "" ? image : spec.image;
}

/**
 * Libraries whose sort order of text changes with the image, such as `ICU 72.1 to 76.1`, if the service's data depend
 * on it. Empty if none changes, or if a version is unknown: then only the agent's check after the change detects it.
 */
export function changedTextOrder(
  from: NodeImageObject | undefined,
  to: NodeImageObject,
  instance: InstanceObservation | undefined,
): string[] {
  const [before, after] = [from?.spec.textLibraries ?? {}, to.spec.textLibraries ?? {}];
  return (instance?.textLibraries ?? []).flatMap((library) => {
    const [was, becomes] = [lookUp(before, library), lookUp(after, library)];
    return was === undefined || becomes === undefined || was === becomes ? [] : [`${library} ${was} to ${becomes}`];
  });
}

/** The reason, for users, why the update is applied only on request, with advice. */
function textOrderReason(changed: readonly string[]): string {
  return (
    `It changes the sort order of text that databases of the service use: ${changed.join(", ")}. It is not applied automatically. Apply it with ` +
    "accept_text_order_change when it suits you, then REINDEX DATABASE each, and ALTER DATABASE ... REFRESH COLLATION VERSION."
  );
}
