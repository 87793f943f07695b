import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import { type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { TaskInput } from "#fleet/task/task.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import { taskTarget } from "./member/member-roles.ts";

/** Time in which an engine must respond to a task (docs/reference/api.md). */
export const engineTimeoutMs = 15_000;

type Case = Exclude<TaskInput["case"], undefined>;
type OutputOf<C> = Extract<TaskResult["output"], { case: C }> extends { value: infer V } ? V : never;

// Error keys by the codes of task failures that users can act on.
// biome-ignore format: a table, aligned so that it reads as one
const failures: ReadonlyMap<string, ErrorKey> = new Map(
  Object.entries<ErrorKey>({
  engine_refused:  "ENGINE_REFUSED",
  not_supported:   "NOT_SUPPORTED",
  name_taken:      "NAME_TAKEN",
  topic_not_found: "TOPIC_NOT_FOUND",
  group_not_found: "CONSUMER_GROUP_NOT_FOUND",
  group_active:    "CONSUMER_GROUP_ACTIVE",
  limit_reached:   "PARTITION_LIMIT_REACHED",
}),
);

/** Codes of failures of tasks that never started. */
const notStarted: ReadonlySet<string> = new Set(["stale_term", "not_ready"]);
const pollIntervalMs = 100;

/** Runs tasks on the primary of a service. During a primary change tasks wait for the new primary. */
export interface EngineTasks {
  /** Throws MACHINE_UNREACHABLE without a response, and ENGINE_REFUSED or NOT_SUPPORTED as the agent reports. */
  run<C extends Case>(
    service: ManagedServiceObject,
    input: Extract<TaskInput, { case: C }>,
    signal: AbortSignal,
  ): Promise<OutputOf<C>>;
}

export interface EngineTaskDeps {
  readonly fleet: Pick<Fleet, "run">;
  readonly services: Pick<Collection<ManagedServiceObject>, "get">;
  readonly clock: Pick<Clock, "monotonicMs">;
}

export function createEngineTasks({ fleet, services, clock }: EngineTaskDeps): EngineTasks {
  /** The current version of the service. */
  const currentOf = (service: ManagedServiceObject) => services.get(service.metadata.id)?.object ?? service;

  async function runOnce(service: ManagedServiceObject, input: TaskInput, signal: AbortSignal): Promise<TaskResult> {
    const request = {
      ownerId: service.metadata.id,
      generation: service.spec.instanceGeneration,
      term: service.status.term,
      lane: "query",
      input,
      deadlineMs: engineTimeoutMs,
    } as const;
    return fleet.run(taskTarget(service).id, request, engineTimeoutMs, signal);
  }

  return {
    async run<C extends Case>(
      service: ManagedServiceObject,
      input: Extract<TaskInput, { case: C }>,
      signal: AbortSignal,
    ) {
      const until = clock.monotonicMs() + engineTimeoutMs;
      for (;;) {
        const current = currentOf(service);
        if (current.spec.primaryChange === undefined) {
          const result = await runOnce(current, input, signal);
          const { failure } = result;
          if (failure === undefined) return outputOf(result, input);
          // A node that is no longer the primary refused the task before its start, so the new primary can run it.
          const mayRepeat = notStarted.has(failure.code) && hasPrimaryChanged(current, currentOf(service));
          if (!mayRepeat) throw new HoldfastError(failures.get(failure.code) ?? "MACHINE_UNREACHABLE", failure.message);
        }
        if (clock.monotonicMs() >= until)
          throw new HoldfastError(
            "MACHINE_UNREACHABLE",
            "The service's primary is changing. Try again when the change is complete.",
          );
        await sleep(pollIntervalMs, undefined, { signal });
      }
    },
  };
}

/** True if the primary has changed or is changing. */
function hasPrimaryChanged(before: ManagedServiceObject, now: ManagedServiceObject): boolean {
  return now.spec.primaryChange !== undefined || now.status.term > before.status.term;
}

function outputOf<C extends Case>({ output }: TaskResult, input: Extract<TaskInput, { case: C }>): OutputOf<C> {
  const { case: requested }: TaskInput = input;
  if (output.case !== requested) throw new Error(`the result of ${requested} is ${output.case}`);
  return output.value as OutputOf<C>;
}
