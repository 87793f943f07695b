import { upgradesData } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject, ManagedServiceSpec, NodeSpec } from "../managed-service.ts";

type ImageChoice = Pick<ManagedServiceSpec, "image" | "guestKernel" | "machineStarts">;

/** True if the machine's image, kernel or starts differ from what its node should have now. */
export function hasDifferentImage({ spec }: ManagedServiceObject, machine: MachineObject): boolean {
  const node = spec.nodes.find(({ id }) => id === machine.metadata.id);
  return differs(node?.pinned ?? spec, machine.spec);
}

/** True if the machine's image, kernel or starts differ from what the service will have after a rolling update. */
export function lacksServiceImage({ spec }: ManagedServiceObject, machine: MachineObject): boolean {
  return differs(spec, machine.spec);
}

/** Version of the node's engine: of its pinned image, otherwise the service's. */
export function nodeVersionOf({ version, nodes }: ManagedServiceSpec, { id }: Pick<NodeSpec, "id">): string {
  return nodes.find((node) => node.id === id)?.pinned?.version ?? version;
}

/**
 * True if the node's data are of another version than the service's. After an upgrade they are replaced by a copy of
 * the primary's data; after a rollback of the upgrade they are current again.
 */
export function hasOutdatedData(spec: ManagedServiceSpec, node: Pick<NodeSpec, "id">): boolean {
  return upgradesData(spec.databaseType) && nodeVersionOf(spec, node) !== spec.version;
}

/** True if the node is pinned to another image or kernel, or has a start pending. */
export function isPinned(spec: ImageChoice, { pinned }: NodeSpec): boolean {
  return pinned !== undefined && differs(spec, pinned);
}

/** True if the node is pinned to another image or kernel. */
export function isImagePinned(spec: ImageChoice, { pinned }: NodeSpec): boolean {
  return pinned !== undefined && imageDiffers(spec, pinned);
}

/**
 * Image and kernel of the service's machines where one was chosen, the version of the engine, and the number of
 * starts.
 */
export function desiredImages({ spec }: ManagedServiceObject): Partial<ImageChoice> & { readonly version: string } {
  const { image, guestKernel, machineStarts, version } = spec;
  return {
    version,
    ...(image !== "" && { image }),
    ...(guestKernel !== undefined && { guestKernel }),
    ...(machineStarts !== undefined && { machineStarts }),
  };
}

function differs(desired: ImageChoice, has: ImageChoice): boolean {
  return imageDiffers(desired, has) || (desired.machineStarts ?? 0) > (has.machineStarts ?? 0);
}

function imageDiffers(desired: ImageChoice, has: ImageChoice): boolean {
  return isDifferent(desired.image, has.image) || isDifferent(desired.guestKernel, has.guestKernel);
}

/** Without a chosen image any image matches. */
function isDifferent(desired = "", has = ""): boolean {
  return desired !== "" && has !== "" && has !== desired;
}
