import { guestKernelSeries } from "@holdfast/compute/compute-provider.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { type ImageOffer, imageOffer } from "./image-offer.ts";
import { imageSchedule } from "./update-schedule.ts";
import { engineVersionIn } from "./node-image.ts";
import type { MaintenanceContext, PendingUpdate } from "./pending-update.ts";

/**
 * The kernels that the service's virtual machines may change to; undefined for machines without a guest kernel.
 */
export function guestKernelOffer(service: ManagedServiceObject, context: MaintenanceContext): ImageOffer | undefined {
  const current = guestKernelOf(service, context);
  return current === "" ? undefined : imageOffer(guestKernelSeries, current, context.images, context.hosts);
}

/** The pending update of the service's guest kernel, if any. */
export function guestKernelUpdate(
  service: ManagedServiceObject,
  context: MaintenanceContext,
): PendingUpdate | undefined {
  const { image: target, since = 0 } = guestKernelOffer(service, context) ?? {};
  if (target === undefined) return undefined;
  const current = guestKernelOf(service, context);
  const currentImage = context.images.find(({ metadata }) => metadata.id === current);
  const { from, to } = kernelVersions(current, target.metadata.id, context);
  // The image includes the initial RAM disk, so it may change without a change of the kernel's version.
  const isOtherLinux = from !== "" && to !== "" && from !== to;
  const { urgencyText, ...schedule } = imageSchedule(service, context, {
    series: guestKernelSeries,
    target,
    currentImage,
    since,
    refused: service.status.maintenance.refusedGuestKernel ?? null,
    onlyByRequest: "",
  });
  return {
    id: target.metadata.id,
    kind: "guest_kernel",
    title: isOtherLinux ? `Linux ${from} to ${to}` : "A newer kernel of the virtual machine",
    description: `The engine is shut down cleanly, and its virtual machine is started with ${
      isOtherLinux ? `Linux ${to}` : "the newer kernel"
    }, from the same image and over the same data. If it does not start, the previous kernel is restored.${urgencyText}`,
    from: isOtherLinux ? from : current,
    to: isOtherLinux ? to : target.metadata.id,
    changesTextOrder: false,
    ...schedule,
  };
}

/** The kernel that the service's virtual machines boot; empty for machines without a guest kernel. */
export function guestKernelOf({ spec }: ManagedServiceObject, { guestKernel }: MaintenanceContext): string {
  return spec.guestKernel ?? guestKernel;
}

/** Full versions of two kernels; empty if unknown. */
export function kernelVersions(from: string, to: string, { images }: Pick<MaintenanceContext, "images">) {
  const { engine, version } = guestKernelSeries;
  const versionIn = (id: string) =>
    engineVersionIn(
      images.find(({ metadata }) => metadata.id === id),
      engine,
      version,
    );
  return { from: versionIn(from), to: versionIn(to) };
}
