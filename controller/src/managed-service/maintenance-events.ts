import type { ManagedServiceObject } from "./managed-service.ts";
import { serviceEvent } from "./service-events.ts";
import type { OperationObject } from "../operation/operation.ts";
import type { NewEvent } from "../store/outbox-entry.ts";

/** Work on the service begins, by itself or by request. */
export function startedEvent(service: ManagedServiceObject, operation: OperationObject): NewEvent {
  return serviceEvent("service.maintenance_started", service, told(operation));
}

/** What an operation came to; undefined unless it is one of maintenance. Deletion cancels without a word: it has its own. */
export function endedEvent(service: ManagedServiceObject, operation: OperationObject): NewEvent | undefined {
  if (operation.spec.maintenance === undefined) return undefined;
  const { state, error, snapshot } = operation.status;
  if (state === "completed") return serviceEvent("service.maintenance_completed", service, told(operation));
  if (state !== "failed") return undefined;
  return serviceEvent("service.maintenance_failed", service, {
    ...told(operation),
    taken_back: operation.status.takenBack !== undefined && service.status.state === "Running",
    data_restored: snapshot?.outcome === "restored",
    error_message: error?.message ?? "",
  });
}

function told({ metadata, spec }: OperationObject): Record<string, unknown> {
  const { updates = [], automatic = false } = spec.maintenance ?? {};
  return { operation_id: metadata.id, update_ids: updates, automatic };
}
