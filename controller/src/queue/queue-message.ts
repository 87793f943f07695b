import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Queue, QueueSchema, QueueStatus } from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import type { QueueObject } from "./queue.ts";
import type { QueueState } from "./queue-lifecycle.ts";

const statuses: Readonly<Record<QueueState, QueueStatus>> = {
  Pending: QueueStatus.PENDING,
  Provisioning: QueueStatus.PROVISIONING,
  Active: QueueStatus.ACTIVE,
  Deprovisioning: QueueStatus.DEPROVISIONING,
  Failed: QueueStatus.FAILED,
};

/** A queue as the API shows it. */
export function queueMessage({ metadata, spec, status }: QueueObject): Queue {
  const { serviceId, queueId: id, databaseName, visibilityTimeoutSeconds, maxAttempts, dlqEnabled } = spec;
  return create(QueueSchema, {
    id,
    serviceId,
    name: metadata.name,
    databaseName,
    visibilityTimeoutSeconds,
    maxAttempts,
    dlqEnabled,
    status: statuses[status.state],
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
    ...(status.errorMessage === null ? {} : { errorMessage: status.errorMessage }),
  });
}
