import { guestLine } from "@holdfast/compute/compute-provider.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { type ImageOffer, imageOffer } from "./image-offer.ts";
import { imageTerms } from "./image-terms.ts";
import { engineVersionIn } from "./node-image.ts";
import type { MaintenanceWorld, PendingUpdate } from "./pending-update.ts";

/** Pure: what the service's virtual machines are offered in the place of their kernel; undefined where they have none of their own. */
export function guestKernelOffer(service: ManagedServiceObject, world: MaintenanceWorld): ImageOffer | undefined {
  const current = guestKernelOf(service, world);
  return current === "" ? undefined : imageOffer(guestLine, current, world.images, world.hosts);
}

/** Pure: the newer kernel that waits for the service's virtual machines, if there is one. */
export function guestKernelUpdate(service: ManagedServiceObject, world: MaintenanceWorld): PendingUpdate | undefined {
  const { image: target, since = 0 } = guestKernelOffer(service, world) ?? {};
  if (target === undefined) return undefined;
  const current = guestKernelOf(service, world);
  const known = world.images.find(({ metadata }) => metadata.id === current);
  const { from, to } = kernelVersions(current, target.metadata.id, world);
  // What starts the guest beside the kernel is part of it.
  const isOtherLinux = from !== "" && to !== "" && from !== to;
  const { why, ...terms } = imageTerms(service, world, {
    line: guestLine,
    target,
    known,
    since,
    refused: service.status.maintenance.refusedGuestKernel ?? null,
    onlyByRequest: "",
  });
  return {
    id: target.metadata.id,
    kind: "guest_kernel",
    title: isOtherLinux ? `Linux ${from} to ${to}` : "A newer kernel of the virtual machine",
    description: `The engine is stopped in order, and its virtual machine is started with ${
      isOtherLinux ? `Linux ${to}` : "the newer kernel"
    }, from the same image and over the same data. If it does not come up, the kernel before is put back.${why}`,
    from: isOtherLinux ? from : current,
    to: isOtherLinux ? to : target.metadata.id,
    changesTextOrder: false,
    ...terms,
  };
}

/** Pure: kernel that the service's virtual machines boot from; empty where they have none of their own. */
export function guestKernelOf({ spec }: ManagedServiceObject, { guestKernel }: MaintenanceWorld): string {
  return spec.guestKernel ?? guestKernel;
}

/** Pure: full versions of two kernels; empty where one is not known. */
export function kernelVersions(from: string, to: string, { images }: Pick<MaintenanceWorld, "images">) {
  const { engine, version } = guestLine;
  const versionIn = (id: string) =>
    engineVersionIn(
      images.find(({ metadata }) => metadata.id === id),
      engine,
      version,
    );
  return { from: versionIn(from), to: versionIn(to) };
}
