import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type DataSnapshotSchema,
  DataSnapshotState,
  type Operation,
  OperationSchema,
  OperationStatus,
} from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import type { DataSnapshot, OperationObject } from "./operation.ts";

// biome-ignore format: a table, aligned so that it reads as one
const statuses: Record<OperationObject["status"]["state"], OperationStatus> = {
  pending:   OperationStatus.PENDING,
  running:   OperationStatus.RUNNING,
  completed: OperationStatus.COMPLETED,
  failed:    OperationStatus.FAILED,
  cancelled: OperationStatus.CANCELLED,
};

// biome-ignore format: a table, aligned so that it reads as one
const snapshotStates: Record<DataSnapshot["outcome"], DataSnapshotState> = {
  taken:    DataSnapshotState.TAKEN,
  none:     DataSnapshotState.NONE,
  restored: DataSnapshotState.RESTORED,
};

/** The message of an operation. */
export function operationMessage(operation: OperationObject): Operation {
  const { metadata, spec, status } = operation;
  const snapshot = status.outcome?.snapshot;
  return create(OperationSchema, {
    id: metadata.id,
    serviceId: spec.subject.id,
    type: spec.type,
    status: statuses[status.state],
    progressPct: status.progressPct,
    createdAt: timestampFromMs(metadata.createdAt),
    ...(status.step === null ? {} : { step: status.step }),
    ...(status.startedAt === null ? {} : { startedAt: timestampFromMs(status.startedAt) }),
    ...(status.deadline === null ? {} : { deadline: timestampFromMs(status.deadline) }),
    ...(status.finishedAt === null ? {} : { finishedAt: timestampFromMs(status.finishedAt) }),
    ...(status.error === null ? {} : { error: status.error }),
    warnings: [...(status.warnings ?? [])],
    ...(snapshot === undefined ? {} : { snapshot: snapshotMessage(snapshot) }),
  });
}

function snapshotMessage({ outcome, reason }: DataSnapshot): MessageInitShape<typeof DataSnapshotSchema> {
  return { state: snapshotStates[outcome], ...(reason === "" ? {} : { reason }) };
}
