import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { guestKernelOffer, guestKernelUpdate } from "./guest-kernel-update.ts";
import type { AwaitedImage } from "./image-offer.ts";
import { imageOfferTo, imageUpdate } from "./image-update.ts";
import { keeperUpdate } from "./keeper-update.ts";
import { type MaintenanceWorld, type PendingUpdate, restartId } from "./pending-update.ts";
import { applyAt, obstacleOf } from "./update-terms.ts";

/** Pure: what waits to be done to the service, an image first. Empty while it is deleted. */
export function pendingUpdates(service: ManagedServiceObject, world: MaintenanceWorld): PendingUpdate[] {
  if (service.metadata.deletionRequestedAt !== undefined) return [];
  const updates = [imageUpdate, guestKernelUpdate, keeperUpdate, restartUpdate].map((update) => update(service, world));
  return updates.filter((update) => update !== undefined);
}

/** Pure: an image, and a kernel, that are newer than what the hosts of the service's machines can give it. */
export function awaitedImages(service: ManagedServiceObject, world: MaintenanceWorld): AwaitedImage[] {
  if (service.metadata.deletionRequestedAt !== undefined) return [];
  const offers = [imageOfferTo(service, world), guestKernelOffer(service, world)];
  return offers.flatMap((offer) => offer?.awaited ?? []);
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
