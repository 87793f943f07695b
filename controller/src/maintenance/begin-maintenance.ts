import { versionNumber } from "../catalog/version-number.ts";
import type { ManagedServiceObject } from "../managed-service/managed-service.ts";
import { newOperation, type OperationObject } from "../operation/operation.ts";
import { generationsOfChange } from "../managed-service/trial/image-trial.ts";
import type { ImageChange, MaintenanceWork } from "../operation/maintenance-work.ts";
import { nextMetadata } from "../store/resource.ts";
import { engineVersionIn, type NodeImageObject } from "./node-image.ts";
import { guestKernelOf, kernelVersions } from "./guest-kernel-update.ts";
import type { MaintenanceWorld, PendingUpdate, UpdateKind } from "./pending-update.ts";

/** Pure: the service with these updates asked for, and the operation that applies them with one restart. */
export function beginMaintenance(
  service: ManagedServiceObject,
  updates: readonly PendingUpdate[],
  world: MaintenanceWorld,
  asked: { operationId: string; automatic: boolean; now: number; acceptsTextOrder?: boolean },
): { after: ManagedServiceObject; operation: OperationObject } {
  const { operationId, automatic, now, acceptsTextOrder = false } = asked;
  const { metadata, spec, status } = service;
  const idOf = (...kinds: UpdateKind[]) => updates.find(({ kind }) => kinds.includes(kind))?.id;
  const [to, kernel] = [idOf("engine_minor", "image"), idOf("guest_kernel")];
  const image = to === undefined ? null : imageChange(service, to, world);
  const guestKernel = kernel === undefined ? undefined : kernelChange(service, kernel, world);
  const work: MaintenanceWork = {
    updates: updates.map(({ id }) => id),
    automatic,
    ...(acceptsTextOrder && { acceptsTextOrder }),
    image,
    ...(guestKernel && { guestKernel }),
  };
  const isTrial = image !== null || guestKernel !== undefined;
  const instanceGeneration = spec.instanceGeneration + (isTrial ? generationsOfChange : 1);
  const operation = newOperation({
    id: operationId,
    serviceId: metadata.id,
    organizationId: metadata.organizationId,
    type: "maintenance",
    instanceGeneration,
    now,
    maintenance: work,
  });
  // An engine that comes up from another image, or in a machine that was started anew, has been restarted.
  const change = isTrial
    ? {
        ...(image && { image: image.to }),
        ...(guestKernel && { guestKernel: guestKernel.to }),
        trial: { operationId, generation: spec.instanceGeneration + 1 },
      }
    : { restartCount: spec.restartCount + 1 };
  const after = {
    ...service,
    metadata: nextMetadata(metadata, now),
    spec: { ...spec, ...change, instanceGeneration },
    status: { ...status, operationId },
  };
  return { after, operation };
}

function imageChange({ spec }: ManagedServiceObject, to: string, { images, image, instance }: MaintenanceWorld) {
  const { databaseType: engine, version } = spec;
  const from = spec.image === "" ? image : spec.image;
  const versionIn = (id: string) =>
    engineVersionIn(
      images.find((one: NodeImageObject) => one.metadata.id === id),
      engine,
      version,
    );
  const fromVersion = versionIn(from) || versionNumber(instance?.engineVersion ?? "");
  return { from, to, fromVersion, toVersion: versionIn(to) };
}

function kernelChange(service: ManagedServiceObject, to: string, world: MaintenanceWorld): ImageChange {
  const from = guestKernelOf(service, world);
  const versions = kernelVersions(from, to, world);
  return { from, to, fromVersion: versions.from, toVersion: versions.to };
}
