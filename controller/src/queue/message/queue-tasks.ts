import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Call } from "@holdfast/common/call.ts";
import type { QueueTaskState } from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import type { TaskIds, TaskRef } from "#operation/task/task-ids.ts";
import type { TaskRecord, TaskSource } from "#operation/task/asynchronous-tasks.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";
import { type QueueObject, queueObjectId } from "../queue.ts";
import type { QueueCalls } from "./queue-calls.ts";

export interface QueueTasksDeps {
  readonly queues: Collection<QueueObject>;
  readonly access: Pick<ServiceAccess, "find">;
  readonly calls: QueueCalls;
  readonly ids: TaskIds;
  /** HMAC in hex under a key for the purpose. */
  readonly keyedHash: (purpose: string, value: string) => string;
  readonly newKey: () => string;
}

/** Kinds of tasks in a database, with their type in the API and the scope of the method that returns their ids. */
// biome-ignore format: a table, aligned so that it reads as one
const kinds = {
  enqueue:    { type: "queue_enqueue",    scope: "services:data" },
  stats:      { type: "queue_stats",      scope: "services:read" },
  purge:      { type: "queue_purge",      scope: "services:data" },
  purge_dead: { type: "queue_purge_dead", scope: "services:data" },
  redrive:    { type: "queue_redrive",    scope: "services:data" },
} as const;

export type QueueTaskName = keyof typeof kinds;

/** Tasks of queues. They are rows in the database of the service, which is queried for each of them. */
export interface QueueTasks {
  readonly sources: readonly TaskSource[];
  /** Key of a task in its database: random, or derived from the call's Idempotency-Key. */
  keyOf(kind: string, call: Call): { readonly key: string; readonly bodyHash: string };
  /** Id of a task in responses, sealed for the caller's organization. */
  idOf(kind: QueueTaskName, key: string, queue: QueueObject, call: Call): string;
  /** True if the task belongs to the queue and has one of these kinds. */
  isOf(queue: QueueObject, ref: TaskRef, names: readonly QueueTaskName[]): boolean;
}

export function createQueueTasks({ queues, access, calls, ids, keyedHash, newKey }: QueueTasksDeps): QueueTasks {
  async function read(name: QueueTaskName, ref: TaskRef, call: Call): Promise<TaskRecord | undefined> {
    const [queueName = "", queueId = ""] = ref.detail.split(" ");
    const service = access.find(ref.serviceId, call)?.object;
    const queue = queues.get(queueObjectId(ref.serviceId, queueName))?.object;
    if (service === undefined || queue?.spec.queueId !== queueId) return undefined;
    const request = { case: "readTask", value: { taskId: ref.key } } as const;
    const task = await calls.call({ service, queue }, request, "task", { signal: call.signal });
    return task.exists && task.queue === queueName && task.kind === name ? recordOf(task) : undefined;
  }

  return {
    sources: Object.entries(kinds).map(([name, { type, scope }]) => ({
      type,
      scope,
      read: (ref, call) => read(name as QueueTaskName, ref, call),
    })),
    keyOf(kind, { idempotency }) {
      if (idempotency === undefined) return { key: newKey(), bodyHash: "" };
      const { scope, key, bodyHash } = idempotency;
      return { key: `key-${keyedHash(`queue ${kind}`, `${scope} ${key}`).slice(0, 40)}`, bodyHash };
    },
    idOf(kind, key, { metadata, spec }, call) {
      const { serviceId, queueId } = spec;
      return ids.seal(call, { type: kinds[kind].type, serviceId, key, detail: `${metadata.name} ${queueId}` });
    },
    isOf({ metadata, spec }, { type, serviceId, detail }, names) {
      const isKind = names.some((name) => kinds[name].type === type);
      return isKind && serviceId === spec.serviceId && detail === `${metadata.name} ${spec.queueId}`;
    },
  };
}

const states: readonly TaskRecord["status"][] = ["pending", "running", "completed", "failed"];

function recordOf({ state, result, error, createdAt, updatedAt }: QueueTaskState): TaskRecord {
  const status = states.find((candidate) => candidate === state) ?? "failed";
  const isFinished = status === "completed" || status === "failed";
  return {
    status,
    result: status === "completed" ? result : undefined,
    error: status === "failed" ? { code: "engine_refused", message: error } : undefined,
    createdAt: createdAt === undefined ? 0 : timestampMs(createdAt),
    finishedAt: isFinished && updatedAt !== undefined ? timestampMs(updatedAt) : undefined,
  };
}
