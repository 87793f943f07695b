import { create } from "@bufbuild/protobuf";
import {
  type EngineDatabase,
  type EngineQueue,
  EngineQueueSchema,
  ListEngineDatabasesSchema,
  ListEngineQueuesSchema,
  PutEngineQueueSchema,
  RemoveEngineQueueSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { TaskInput } from "#fleet/task/task.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { QueueObject } from "./queue.ts";
import { taskTarget } from "#services/service/member/member-roles.ts";

/** Outcome of a request to the queue registry of a database. */
export type RegistryOutcome<T> =
  | { readonly kind: "done"; readonly value: T }
  /** Permanent failure; the message is for users. */
  | { readonly kind: "refused"; readonly message: string }
  /** Temporary failure: retry later. */
  | { readonly kind: "notYet"; readonly reason: string };

/** The queue registries in services' databases, through their agents. Each call is idempotent. */
export interface QueueRegistry {
  put(
    service: ManagedServiceObject,
    queue: QueueObject,
    signal: AbortSignal,
    options?: { adopt: boolean },
  ): Promise<RegistryOutcome<true>>;
  /** Deletes a part of the messages; the value is true after the queue and all messages are deleted. */
  remove(
    service: ManagedServiceObject,
    queue: { readonly database: string; readonly id: string },
    signal: AbortSignal,
  ): Promise<RegistryOutcome<boolean>>;
  list(service: ManagedServiceObject, signal: AbortSignal): Promise<RegistryOutcome<EngineQueue[]>>;
  /** Names of all databases, with or without queues. */
  databases(service: ManagedServiceObject, signal: AbortSignal): Promise<RegistryOutcome<string[]>>;
}

const timeoutMs = 25_000;

// Codes of failures that a retry cannot repair.
const refusals: readonly string[] = [
  "engine_refused",
  "name_taken",
  "queue_not_active",
  "invalid_task",
  "not_possible",
];

export function createQueueRegistry({ fleet }: { readonly fleet: Pick<Fleet, "run"> }): QueueRegistry {
  async function run<C extends string>(
    service: ManagedServiceObject,
    input: TaskInput & { case: C },
    signal: AbortSignal,
  ): Promise<RegistryOutcome<{ case: string | undefined; value?: unknown }>> {
    const { metadata, spec, status } = service;
    const request = {
      ownerId: metadata.id,
      generation: spec.instanceGeneration,
      term: status.term,
      lane: "queue",
      input,
      deadlineMs: timeoutMs,
    } as const;
    try {
      const { failure, output } = await fleet.run(taskTarget(service).id, request, timeoutMs, signal);
      if (failure === undefined) return { kind: "done", value: output };
      const { code, message } = failure;
      return refusals.includes(code) ? { kind: "refused", message } : { kind: "notYet", reason: message };
    } catch (error) {
      signal.throwIfAborted();
      return { kind: "notYet", reason: String(error) };
    }
  }

  return {
    async put(service, queue, signal, { adopt } = { adopt: false }) {
      const value = create(PutEngineQueueSchema, { queue: engineQueueOf(queue), adopt });
      const outcome = await run(service, { case: "putEngineQueue", value }, signal);
      return outcome.kind === "done" ? { kind: "done", value: true } : outcome;
    },
    async remove(service, { database, id }, signal) {
      const value = create(RemoveEngineQueueSchema, { database, id });
      const outcome = await run(service, { case: "removeEngineQueue", value }, signal);
      if (outcome.kind !== "done") return outcome;
      return { kind: "done", value: (outcome.value.value as { deleted: boolean }).deleted };
    },
    async list(service, signal) {
      const value = create(ListEngineQueuesSchema);
      const outcome = await run(service, { case: "listEngineQueues", value }, signal);
      if (outcome.kind !== "done") return outcome;
      return { kind: "done", value: (outcome.value.value as { queues: EngineQueue[] }).queues };
    },
    async databases(service, signal) {
      const value = create(ListEngineDatabasesSchema);
      const outcome = await run(service, { case: "listEngineDatabases", value }, signal);
      if (outcome.kind !== "done") return outcome;
      const { databases } = outcome.value.value as { databases: EngineDatabase[] };
      // An interrupted DROP DATABASE leaves an invalid database.
      const valid = databases.filter(({ state }) => state !== "invalid");
      return { kind: "done", value: valid.map(({ name }) => name) };
    },
  };
}

function engineQueueOf({ metadata, spec }: QueueObject): EngineQueue {
  const { queueId: id, databaseName: database, visibilityTimeoutSeconds, maxAttempts, dlqEnabled } = spec;
  const settings = { visibilityTimeoutSeconds, maxAttempts, dlqEnabled };
  return create(EngineQueueSchema, { database, id, name: metadata.name, ...settings });
}
