import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Drill, DrillSchema, DrillStatus, DrillTrigger } from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import type { DrillState } from "./drill-lifecycle.ts";
import type { DrillObject, DrillSpec } from "./drill.ts";

// biome-ignore format: a table, aligned so that it reads as one
const statuses: Record<DrillState, DrillStatus> = {
  pending:   DrillStatus.PENDING,
  running:   DrillStatus.RUNNING,
  completed: DrillStatus.COMPLETED,
  failed:    DrillStatus.FAILED,
};

const triggers: Record<DrillSpec["trigger"], DrillTrigger> = {
  schedule: DrillTrigger.SCHEDULE,
  request: DrillTrigger.REQUEST,
};

/** Pure: a drill as the API shows it. */
export function drillMessage({ metadata, spec, status }: DrillObject): Drill {
  const target = spec.restores.find(({ targetTime }) => targetTime !== null)?.targetTime ?? null;
  const { startedAt, finishedAt, error, checks } = status;
  return create(DrillSchema, {
    id: metadata.id,
    serviceId: spec.serviceId,
    status: statuses[status.state],
    trigger: triggers[spec.trigger],
    backupId: spec.restores[0]?.backupId ?? "",
    ...(target !== null && { target: timestampFromMs(target) }),
    checks: checks.map((check) => ({ ...check })),
    ...(error && { error: error.message }),
    createdAt: timestampFromMs(metadata.createdAt),
    ...(startedAt !== null && { startedAt: timestampFromMs(startedAt) }),
    ...(finishedAt !== null && { finishedAt: timestampFromMs(finishedAt) }),
    operationId: spec.operationId,
  });
}
