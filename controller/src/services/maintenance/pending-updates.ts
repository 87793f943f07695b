import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { guestKernelOffer, guestKernelUpdate } from "./guest-kernel-update.ts";
import type { AwaitedImage } from "./image-offer.ts";
import { imageOfferTo, imageUpdate } from "./image-update.ts";
import { type KeeperOfMachine, type MaintenanceContext, type PendingUpdate, restartId } from "./pending-update.ts";
import { applyAt, obstacleOf, unreachableHostOf } from "./update-schedule.ts";

/** Pending updates of the service, images first. Empty while it is being deleted. */
export function pendingUpdates(service: ManagedServiceObject, context: MaintenanceContext): PendingUpdate[] {
  if (service.metadata.deletionRequestedAt !== undefined) return [];
  const updates = [imageUpdate, guestKernelUpdate, keeperUpdate, restartUpdate].map((update) =>
    update(service, context),
  );
  return updates.filter((update) => update !== undefined);
}

/** Newer images and kernels that some hosts of the service lack. */
export function awaitedImages(service: ManagedServiceObject, context: MaintenanceContext): AwaitedImage[] {
  if (service.metadata.deletionRequestedAt !== undefined) return [];
  const offers = [imageOfferTo(service, context), guestKernelOffer(service, context)];
  return offers.flatMap((offer) => offer?.awaited ?? []);
}

function restartUpdate(service: ManagedServiceObject, context: MaintenanceContext): PendingUpdate | undefined {
  const parameters = parametersThatWait(context.instance);
  if (parameters.length === 0) return undefined;
  const availableSince = service.status.maintenance.restartSince ?? context.now;
  return {
    id: restartId,
    kind: "restart",
    title: parameters.length === 1 ? `Restart for ${parameters[0]}` : `Restart for ${parameters.length} parameters`,
    description: `These parameters take effect when the engine is restarted: ${parameters.join(", ")}.`,
    from: null,
    to: null,
    urgent: false,
    availableSince,
    applyAt: applyAt(service, availableSince, undefined, context.now),
    requiresRestart: true,
    changesTextOrder: false,
    blocked: obstacleOf(service, context) ?? null,
    snapshotProblem: null,
  };
}

/** Parameters that the running engine will apply at its next start. */
export function parametersThatWait(instance: InstanceObservation | undefined): readonly string[] {
  return instance?.state === "running" ? instance.pendingRestart : [];
}

/** A restart of the service's machines, if one of them would then get a newer keeper. */
function keeperUpdate(service: ManagedServiceObject, context: MaintenanceContext): PendingUpdate | undefined {
  const behind = keepersBehind(context);
  if (behind.length === 0) return undefined;
  const from = Math.min(...behind.map(({ has }) => has));
  const to = Math.max(...behind.map(({ next }) => next));
  const availableSince = service.status.maintenance.keeperSince ?? context.now;
  return {
    id: `keeper-${to}`,
    kind: "keeper",
    title: "A newer keeper of the machine",
    description:
      "The engine is shut down cleanly, and its machine is restarted from the same image with the same data. Afterwards it runs under a newer keeper, the program that starts and stops all processes on the machine.",
    from: String(from),
    to: String(to),
    urgent: false,
    availableSince,
    applyAt: applyAt(service, availableSince, undefined, context.now),
    requiresRestart: true,
    changesTextOrder: false,
    blocked: obstacleOf(service, context) ?? unreachableHostOf(context) ?? null,
    snapshotProblem: null,
  };
}

/** Machines of the service that get a newer keeper when they restart. */
export function keepersBehind({ keepers }: MaintenanceContext): KeeperOfMachine[] {
  return keepers.filter(({ has, next }) => has < next);
}
