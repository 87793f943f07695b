import { create } from "@bufbuild/protobuf";
import { type TaskSummary, TaskSummarySchema } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import { shownStates } from "./managed-service-message.ts";

/** Pure: how far the operation in progress is; 100 and no task when there is none. */
export function taskSummaryOf(service: ManagedServiceObject, operation: OperationObject | undefined): TaskSummary {
  const status = shownStates[service.status.state];
  if (operation === undefined) return create(TaskSummarySchema, { status, progressPct: 100 });
  const { step, progressPct } = operation.status;
  const operationId = operation.metadata.id;
  return create(TaskSummarySchema, {
    status,
    progressPct,
    operationId,
    ...(step === null ? {} : { currentTask: step }),
  });
}
