import { upgradesData } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { versionNumber } from "#catalog/version-number.ts";
import { type ManagedServiceObject, serviceSubject } from "../service/managed-service.ts";
import { newOperation, type OperationObject } from "#operation/operation.ts";
import { withRestart } from "../service/member/restarts.ts";
import { rollsImages, withDataKept, withImagesKept } from "../service/trial/images-in-turn.ts";
import { generationsOfChange } from "../service/trial/image-trial.ts";
import type { ImageChange, MaintenanceWork, VersionChange } from "#operation/maintenance-work.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { engineVersionIn, type NodeImageObject } from "./node-image.ts";
import { guestKernelOf, kernelVersions } from "./guest-kernel-update.ts";
import type { MaintenanceWorld, PendingUpdate, UpdateKind } from "./pending-update.ts";

interface Asked {
  readonly operationId: string;
  readonly automatic: boolean;
  readonly now: number;
  readonly acceptsTextOrder?: boolean;
}

/** A service and the operation that it has from now on, as both are to be written. */
export interface Begun {
  readonly after: ManagedServiceObject;
  readonly operation: OperationObject;
}

/** What comes under the data, or starts the machines. */
interface Placed {
  readonly image: ImageChange | null;
  readonly guestKernel?: ImageChange | undefined;
  readonly startsMachines?: boolean;
  readonly version?: VersionChange;
}

/** Pure: the service with these updates asked for, and the operation that applies them with one restart. */
export function beginMaintenance(
  service: ManagedServiceObject,
  updates: readonly PendingUpdate[],
  world: MaintenanceWorld,
  asked: Asked,
): Begun {
  const idOf = (...kinds: UpdateKind[]) => updates.find(({ kind }) => kinds.includes(kind))?.id;
  const [to, kernel] = [idOf("engine_minor", "image"), idOf("guest_kernel")];
  const image = to === undefined ? null : imageChange(service, to, world);
  const guestKernel = kernel === undefined ? undefined : kernelChange(service, kernel, world);
  // Another image, or kernel, starts the machines anyway.
  const startsMachines = image === null && guestKernel === undefined && idOf("keeper") !== undefined;
  return begun(service, { image, guestKernel, startsMachines }, updates, world, asked);
}

/** Pure: the same for an upgrade to another version of the engine, which the image has. */
export function beginUpgrade(
  service: ManagedServiceObject,
  to: { readonly version: string; readonly image: string },
  world: MaintenanceWorld,
  asked: Omit<Asked, "automatic">,
): Begun {
  const version = { from: service.spec.version, to: to.version };
  const image = imageChange(service, to.image, world, to.version);
  return begun(service, { image, version }, [], world, { ...asked, automatic: false });
}

function begun(
  service: ManagedServiceObject,
  { image, guestKernel, startsMachines = false, version }: Placed,
  updates: readonly PendingUpdate[],
  world: MaintenanceWorld,
  { operationId, automatic, now, acceptsTextOrder = false }: Asked,
): Begun {
  const { metadata, spec, status } = service;
  const isTrial = image !== null || guestKernel !== undefined;
  const changesData = version !== undefined && upgradesData(spec.databaseType);
  const inTurn = (isTrial || startsMachines) && !changesData && rollsImages(service);
  const work: MaintenanceWork = {
    updates: updates.map(({ id }) => id),
    automatic,
    ...(acceptsTextOrder && { acceptsTextOrder }),
    image,
    ...(guestKernel && { guestKernel }),
    ...(startsMachines && { startsMachines }),
    ...(inTurn && { inTurn }),
    ...(isTrial && world.restorePoint !== undefined && { restorePoint: world.restorePoint }),
  };
  const instanceGeneration =
    spec.instanceGeneration + ((isTrial || startsMachines) && !inTurn ? generationsOfChange : 1);
  const { organizationId } = metadata;
  const of = { id: operationId, subject: serviceSubject(metadata.id), organizationId, now };
  const operation =
    version === undefined
      ? newOperation({ ...of, type: "maintenance", work })
      : newOperation({ ...of, type: "upgrade", work: { ...work, version } });
  // An engine that comes up from another image, or in a machine that was started anew, has been restarted.
  const placed = {
    ...(image && { image: image.to }),
    ...(guestKernel && { guestKernel: guestKernel.to }),
    ...(version && { version: version.to }),
    ...(startsMachines && { machineStarts: (spec.machineStarts ?? 0) + 1 }),
    ...(inTurn && { nodes: withImagesKept(service, image, guestKernel) }),
    ...(changesData && { nodes: withDataKept(service, image) }),
    ...(isTrial && !inTurn && { trial: { operationId, generation: spec.instanceGeneration + 1 } }),
  };
  const change = isTrial || startsMachines ? placed : withRestart(service);
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
  { images, image, instance }: MaintenanceWorld,
  toVersion = spec.version,
): ImageChange {
  const { databaseType: engine } = spec;
  const from = spec.image === "" ? image : spec.image;
  const versionIn = (id: string, version: string) =>
    engineVersionIn(
      images.find((one: NodeImageObject) => one.metadata.id === id),
      engine,
      version,
    );
  const fromVersion = versionIn(from, spec.version) || versionNumber(instance?.engineVersion ?? "");
  return { from, to, fromVersion, toVersion: versionIn(to, toVersion) };
}

function kernelChange(service: ManagedServiceObject, to: string, world: MaintenanceWorld): ImageChange {
  const from = guestKernelOf(service, world);
  const versions = kernelVersions(from, to, world);
  return { from, to, fromVersion: versions.from, toVersion: versions.to };
}
