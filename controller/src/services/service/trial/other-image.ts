import { upgradesData } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { ManagedServiceObject, ManagedServiceSpec, NodeSpec } from "../managed-service.ts";

type Chosen = Pick<ManagedServiceSpec, "image" | "guestKernel" | "machineStarts">;

/** Does the machine run from another image, or boot from another kernel, than it is to have now, or is it to be started again? */
export function hasOtherImage({ spec }: ManagedServiceObject, machine: MachineObject): boolean {
  const node = spec.nodes.find(({ id }) => id === machine.metadata.id);
  return differs(node?.keeps ?? spec, machine.spec);
}

/** The same of what the service is to have in the end, whoever waits for its turn. */
export function lacksImage({ spec }: ManagedServiceObject, machine: MachineObject): boolean {
  return differs(spec, machine.spec);
}

/** Pure: of the node's engine: that of its image until its turn comes, then the service's. */
export function versionOf({ version, nodes }: ManagedServiceSpec, { id }: Pick<NodeSpec, "id">): string {
  return nodes.find((node) => node.id === id)?.keeps?.version ?? version;
}

/**
 * Pure: are the node's data of a version that the service has no more, or has not for good? They are copied anew from the primary's once
 * these are upgraded, and are the service's again when the upgrade is rolled back.
 */
export function isOutdated(spec: ManagedServiceSpec, node: Pick<NodeSpec, "id">): boolean {
  return upgradesData(spec.databaseType) && versionOf(spec, node) !== spec.version;
}

/** Pure: does the node keep another image, or kernel, until its turn, or is it still to be started again? */
export function keepsOther(spec: Chosen, { keeps }: NodeSpec): boolean {
  return keeps !== undefined && differs(spec, keeps);
}

/** Pure: the same of image and kernel alone. */
export function keepsOtherImage(spec: Chosen, { keeps }: NodeSpec): boolean {
  return keeps !== undefined && hasOther(spec, keeps);
}

/**
 * Pure: image and kernel that the service's machines are to have, as far as either was ever chosen, the version of the engine in it,
 * and the start that they are to have had.
 */
export function chosenImages({ spec }: ManagedServiceObject): Partial<Chosen> & { readonly version: string } {
  const { image, guestKernel, machineStarts, version } = spec;
  return {
    version,
    ...(image !== "" && { image }),
    ...(guestKernel !== undefined && { guestKernel }),
    ...(machineStarts !== undefined && { machineStarts }),
  };
}

function differs(wanted: Chosen, has: Chosen): boolean {
  return hasOther(wanted, has) || (wanted.machineStarts ?? 0) > (has.machineStarts ?? 0);
}

function hasOther(wanted: Chosen, has: Chosen): boolean {
  return isOther(wanted.image, has.image) || isOther(wanted.guestKernel, has.guestKernel);
}

/** Where none was chosen yet, any will do. */
function isOther(wanted = "", has = ""): boolean {
  return wanted !== "" && has !== "" && has !== wanted;
}
