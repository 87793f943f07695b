import { type CatalogData, planOf } from "#catalog/catalog.ts";
import type { MachineSize } from "#fleet/machine/machine.ts";
import type { ServiceSize, SizeChange } from "#operation/operation-details.ts";
import { type OperationObject, workOf } from "#operation/operation.ts";

const gib = 1024 ** 3;

/** A change of size that is under way, as it stands in the service. */
export interface Resizing {
  readonly operationId: string;
  readonly from: ServiceSize;
  /** Of each machine before it, and after it. */
  readonly fromMachine: MachineSize;
  readonly toMachine: MachineSize;
  /** A machine could not have the new size, or the engine not run in it: `fromMachine` is the goal. */
  readonly isRolledBack?: true;
}

/** The change of size that the operation brings; undefined for every other operation. */
export function sizeChangeOf(operation: OperationObject | undefined): SizeChange | undefined {
  return operation && (workOf(operation, "resize") ?? workOf(operation, "expand"));
}

/** Pure: what each machine of a service of this size is. */
export function machineSizeOf({ planName, storageSizeGb }: ServiceSize, catalog: CatalogData): MachineSize {
  const { vcpu, memoryGb, rootGb } = planOf(catalog, planName);
  return { vcpu, memoryBytes: memoryGb * gib, rootBytes: rootGb * gib, diskBytes: storageSizeGb * gib };
}

/** Pure: what holds either, so that nothing is taken away of an engine before it can do without. */
export function sizeForBoth(one: MachineSize, other: MachineSize): MachineSize {
  return eachOf((dimension) => Math.max(one[dimension], other[dimension]));
}

/** Pure: a size made dimension by dimension. */
export function eachOf(valueOf: (dimension: keyof MachineSize) => number): MachineSize {
  return {
    vcpu: valueOf("vcpu"),
    memoryBytes: valueOf("memoryBytes"),
    rootBytes: valueOf("rootBytes"),
    diskBytes: valueOf("diskBytes"),
  };
}
