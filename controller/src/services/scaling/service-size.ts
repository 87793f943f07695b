import { type CatalogData, planOf } from "#catalog/catalog.ts";
import type { MachineSize } from "#fleet/machine/machine.ts";
import type { ServiceSize, SizeChange } from "../service/service-operations.ts";
import type { OperationObject } from "#operation/operation.ts";
import { serviceOperations } from "../service/service-operations.ts";

const gib = 1024 ** 3;

/** A change of size in progress, as part of the service's spec. */
export interface Resizing {
  readonly operationId: string;
  readonly from: ServiceSize;
  /** Size of each machine before and after. */
  readonly fromMachine: MachineSize;
  readonly toMachine: MachineSize;
  /** True if the change failed, so that machines return to `fromMachine`. */
  readonly isRolledBack?: true;
}

/** The change of size that an operation makes; undefined for other operations. */
export function sizeChangeOf(operation: OperationObject | undefined): SizeChange | undefined {
  return operation && (serviceOperations.resize.workOf(operation) ?? serviceOperations.expand.workOf(operation));
}

/** Size of each machine of a service. */
export function machineSizeOf({ planName, storageSizeGb }: ServiceSize, catalog: CatalogData): MachineSize {
  const { vcpu, memoryGb, rootGb } = planOf(catalog, planName);
  return { vcpu, memoryBytes: memoryGb * gib, rootBytes: rootGb * gib, diskBytes: storageSizeGb * gib };
}

/** The maximum of two sizes in each dimension: resources are removed from an engine only after it has adapted. */
export function largerOfEach(a: MachineSize, b: MachineSize): MachineSize {
  return mapSize((dimension) => Math.max(a[dimension], b[dimension]));
}

/** A machine size, with each dimension computed by `valueOf`. */
export function mapSize(valueOf: (dimension: keyof MachineSize) => number): MachineSize {
  return {
    vcpu: valueOf("vcpu"),
    memoryBytes: valueOf("memoryBytes"),
    rootBytes: valueOf("rootBytes"),
    diskBytes: valueOf("diskBytes"),
  };
}
