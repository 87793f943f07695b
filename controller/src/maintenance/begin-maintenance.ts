import { versionNumber } from "../catalog/version-number.ts";
import type { ManagedServiceObject } from "../managed-service/managed-service.ts";
import { newOperation, type OperationObject } from "../operation/operation.ts";
import { generationsOfChange } from "../managed-service/trial/image-trial.ts";
import type { MaintenanceWork } from "../operation/maintenance-work.ts";
import { engineVersionIn, type NodeImageObject } from "./node-image.ts";
import { type MaintenanceWorld, type PendingUpdate, restartId } from "./pending-updates.ts";

/** Pure: the service with these updates asked for, and the operation that applies them with one restart. */
export function beginMaintenance(
  service: ManagedServiceObject,
  updates: readonly PendingUpdate[],
  world: MaintenanceWorld,
  asked: { operationId: string; automatic: boolean; now: number; acceptsTextOrder?: boolean },
): { after: ManagedServiceObject; operation: OperationObject } {
  const { operationId, automatic, now, acceptsTextOrder = false } = asked;
  const { metadata, spec, status } = service;
  const target = updates.find(({ id }) => id !== restartId);
  const image = target === undefined ? null : imageChange(service, target.id, world);
  const work: MaintenanceWork = {
    updates: updates.map(({ id }) => id),
    automatic,
    ...(acceptsTextOrder && { acceptsTextOrder }),
    image,
  };
  const instanceGeneration = spec.instanceGeneration + (image === null ? 1 : generationsOfChange);
  const operation = newOperation({
    id: operationId,
    serviceId: metadata.id,
    organizationId: metadata.organizationId,
    type: "maintenance",
    instanceGeneration,
    now,
    maintenance: work,
  });
  // An engine that comes up from another image has been restarted.
  const change =
    image === null
      ? { restartCount: spec.restartCount + 1 }
      : { image: image.to, trial: { operationId, generation: spec.instanceGeneration + 1 } };
  const after = {
    ...service,
    metadata: { ...metadata, generation: metadata.generation + 1, updatedAt: now },
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
