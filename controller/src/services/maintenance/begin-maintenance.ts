import { upgradesData } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { versionNumber } from "#catalog/version-number.ts";
import { managedServiceKind, type ManagedServiceObject, serviceSubject } from "../service/managed-service.ts";
import { operationKind, type OperationObject } from "#operation/operation.ts";
import { withRestart } from "../service/member/restarts.ts";
import { canRollImages, withPinnedReplicas, withPinnedImages } from "../service/canary/image-rollout.ts";
import { generationsPerImageChange } from "../service/canary/image-canary.ts";
import type { ImageChange, MaintenanceWork, VersionChange } from "./maintenance-work.ts";
import { nextMetadata, type Stored } from "#kernel/store/resource.ts";
import { engineVersionIn, type NodeImageObject } from "./node-image.ts";
import { guestKernelOf, kernelVersions } from "./guest-kernel-update.ts";
import type { MaintenanceContext, PendingUpdate, UpdateKind } from "./pending-update.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { startedEvent } from "./maintenance-events.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { serviceOperations } from "../service/service-operations.ts";

interface MaintenanceRequest {
  readonly operationId: string;
  readonly automatic: boolean;
  readonly now: number;
  readonly acceptsTextOrder?: boolean;
}

/** A service and its new operation, to be written in one transaction. */
export interface MaintenanceStart {
  readonly after: ManagedServiceObject;
  readonly operation: OperationObject;
}

/** Changes of image, kernel and version, and the restart of machines. */
interface Replacements {
  readonly image: ImageChange | null;
  readonly guestKernel?: ImageChange | undefined;
  readonly startsMachines?: boolean;
  readonly version?: VersionChange;
}

/** Starts an operation that applies these updates with one restart: the changed service and the operation. */
export function beginMaintenance(
  service: ManagedServiceObject,
  updates: readonly PendingUpdate[],
  context: MaintenanceContext,
  request: MaintenanceRequest,
): MaintenanceStart {
  const idOf = (...kinds: UpdateKind[]) => updates.find(({ kind }) => kinds.includes(kind))?.id;
  const [to, kernel] = [idOf("engine_minor", "image"), idOf("guest_kernel")];
  const image = to === undefined ? null : imageChange(service, to, context);
  const guestKernel = kernel === undefined ? undefined : kernelChange(service, kernel, context);
  // Another image or kernel restarts the machines anyway.
  const startsMachines = image === null && guestKernel === undefined && idOf("keeper") !== undefined;
  return startOf(service, { image, guestKernel, startsMachines }, updates, context, request);
}

/** Starts an upgrade to another version of the engine, which the image must have. */
export function beginUpgrade(
  service: ManagedServiceObject,
  to: { readonly version: string; readonly image: string },
  context: MaintenanceContext,
  request: Omit<MaintenanceRequest, "automatic">,
): MaintenanceStart {
  const version = { from: service.spec.version, to: to.version };
  const image = imageChange(service, to.image, context, to.version);
  return startOf(service, { image, version }, [], context, { ...request, automatic: false });
}

function startOf(
  service: ManagedServiceObject,
  { image, guestKernel, startsMachines = false, version }: Replacements,
  updates: readonly PendingUpdate[],
  context: MaintenanceContext,
  { operationId, automatic, now, acceptsTextOrder = false }: MaintenanceRequest,
): MaintenanceStart {
  const { metadata, spec, status } = service;
  const isCanary = image !== null || guestKernel !== undefined;
  const changesData = version !== undefined && upgradesData(spec.databaseType);
  const inRollout = (isCanary || startsMachines) && !changesData && canRollImages(service);
  const work: MaintenanceWork = {
    updates: updates.map(({ id }) => id),
    automatic,
    ...(acceptsTextOrder && { acceptsTextOrder }),
    image,
    ...(guestKernel && { guestKernel }),
    ...(startsMachines && { startsMachines }),
    ...(inRollout && { inRollout }),
    ...(isCanary && context.restorePoint !== undefined && { restorePoint: context.restorePoint }),
  };
  const instanceGeneration =
    spec.instanceGeneration + ((isCanary || startsMachines) && !inRollout ? generationsPerImageChange : 1);
  const { organizationId } = metadata;
  const of = { id: operationId, subject: serviceSubject(metadata.id), organizationId, now };
  const operation =
    version === undefined
      ? newOperation({ ...of, type: serviceOperations.maintenance, work })
      : newOperation({ ...of, type: serviceOperations.upgrade, work: { ...work, version } });
  // A new image or a restart of the machine also restarts the engine, which applies pending parameters.
  const replaced = {
    ...(image && { image: image.to }),
    ...(guestKernel && { guestKernel: guestKernel.to }),
    ...(version && { version: version.to }),
    ...(startsMachines && { machineStarts: (spec.machineStarts ?? 0) + 1 }),
    ...(inRollout && { nodes: withPinnedImages(service, image, guestKernel) }),
    ...(changesData && { nodes: withPinnedReplicas(service, image) }),
    ...(isCanary && !inRollout && { canary: { operationId, generation: spec.instanceGeneration + 1 } }),
  };
  const change = isCanary || startsMachines ? replaced : withRestart(service);
  const after = {
    ...service,
    metadata: nextMetadata(metadata, now),
    spec: { ...spec, ...change, instanceGeneration },
    status: { ...status, operationId },
  };
  return { after, operation };
}

function imageChange(
  { spec }: ManagedServiceObject,
  to: string,
  { images, image, instance }: MaintenanceContext,
  toVersion = spec.version,
): ImageChange {
  const { databaseType: engine } = spec;
  const from = spec.image === "" ? image : spec.image;
  const versionIn = (id: string, version: string) =>
    engineVersionIn(
      images.find((candidate: NodeImageObject) => candidate.metadata.id === id),
      engine,
      version,
    );
  const fromVersion = versionIn(from, spec.version) || versionNumber(instance?.engineVersion ?? "");
  return { from, to, fromVersion, toVersion: versionIn(to, toVersion) };
}

function kernelChange(service: ManagedServiceObject, to: string, context: MaintenanceContext): ImageChange {
  const from = guestKernelOf(service, context);
  const versions = kernelVersions(from, to, context);
  return { from, to, fromVersion: versions.from, toVersion: versions.to };
}

/** Adds requested maintenance to the changes: service, operation and event. */
export function addMaintenance(
  unit: Changes,
  service: Stored<ManagedServiceObject>,
  { after, operation }: MaintenanceStart,
): void {
  unit.create(operationKind, operation);
  unit.update(managedServiceKind, service, after);
  unit.event(startedEvent(after, operation));
}
