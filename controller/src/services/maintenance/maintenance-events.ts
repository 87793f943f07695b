import type { ManagedServiceObject } from "../service/managed-service.ts";
import { serviceEvent } from "../service/service-events.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import { maintenanceWorkOf, replacementOutcomeOf } from "../service/service-operations.ts";

/** Event of the start of maintenance, automatic or requested. */
export function startedEvent(service: ManagedServiceObject, operation: OperationObject): NewEvent {
  return serviceEvent("service.maintenance_started", service, maintenanceData(operation));
}

/**
 * Event of a maintenance operation that has ended; undefined for other operations, and for an operation that a deletion
 * canceled.
 */
export function endedEvent(service: ManagedServiceObject, operation: OperationObject): NewEvent | undefined {
  if (maintenanceWorkOf(operation) === undefined) return undefined;
  const { state, error } = operation.status;
  if (state === "completed") return serviceEvent("service.maintenance_completed", service, maintenanceData(operation));
  if (state !== "failed") return undefined;
  return serviceEvent("service.maintenance_failed", service, {
    ...maintenanceData(operation),
    rolled_back: operation.status.rollback !== undefined && service.status.state === "Running",
    data_restored: replacementOutcomeOf(operation)?.snapshot?.outcome === "restored",
    error_message: error?.message ?? "",
  });
}

function maintenanceData(operation: OperationObject): Record<string, unknown> {
  const { updates = [], automatic = false } = maintenanceWorkOf(operation) ?? {};
  return { operation_id: operation.metadata.id, update_ids: updates, automatic };
}
