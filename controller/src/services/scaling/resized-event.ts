import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { sizeChangeOf } from "./service-size.ts";
import { serviceEvent } from "../service/service-events.ts";

/** Pure: what the end of a change of size announces; undefined for one that was rolled back, and for every other operation. */
export function resizedEvent(service: ManagedServiceObject, operation: OperationObject): NewEvent | undefined {
  const size = sizeChangeOf(operation);
  if (size === undefined || operation.status.state !== "completed") return undefined;
  return serviceEvent("service.resized", service, {
    operation_id: operation.metadata.id,
    plan_name: size.to.planName,
    storage_size_gb: size.to.storageSizeGb,
    from_plan_name: size.from.planName,
    from_storage_size_gb: size.from.storageSizeGb,
  });
}
