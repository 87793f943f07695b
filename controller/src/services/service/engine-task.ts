import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import { type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { TaskInput } from "#fleet/task/task.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { type ManagedServiceObject, primaryOf } from "./managed-service.ts";

/** What an engine must take is answered within this time (docs/api.md, what comes out). */
export const engineTimeoutMs = 15_000;

type Case = Exclude<TaskInput["case"], undefined>;
type OutputOf<C> = Extract<TaskResult["output"], { case: C }> extends { value: infer V } ? V : never;

// Codes of task failures that mean something to a user.
// biome-ignore format: a table, aligned so that it reads as one
const failures: ReadonlyMap<string, ErrorKey> = new Map(
  Object.entries<ErrorKey>({
  engine_refused: "ENGINE_REFUSED",
  not_supported:  "NOT_SUPPORTED",
}),
);

/** Of failures: nothing of the task was done. */
const notBegun: ReadonlySet<string> = new Set(["stale_term", "not_ready"]);
const lookEveryMs = 100;

/** Runs tasks on the primary of a service. While that changes they wait for the new one, and go to it. */
export interface EngineTasks {
  /** Throws MACHINE_UNREACHABLE when no answer came, ENGINE_REFUSED and NOT_SUPPORTED as the agent says. */
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
  /** The service as it is now. */
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
    return fleet.run(primaryOf(service).id, request, engineTimeoutMs, signal);
  }

  return {
    async run<C extends Case>(
      asked: ManagedServiceObject,
      input: Extract<TaskInput, { case: C }>,
      signal: AbortSignal,
    ) {
      const until = clock.monotonicMs() + engineTimeoutMs;
      for (;;) {
        const service = currentOf(asked);
        if (service.spec.succession === undefined) {
          const result = await runOnce(service, input, signal);
          const { failure } = result;
          if (failure === undefined) return outputOf(result, input);
          // Refused before it began, by a node that is not the primary any more: whoever is it now is asked.
          const mayRepeat = notBegun.has(failure.code) && isElsewhere(service, currentOf(asked));
          if (!mayRepeat) throw new HoldfastError(failures.get(failure.code) ?? "MACHINE_UNREACHABLE", failure.message);
        }
        if (clock.monotonicMs() >= until)
          throw new HoldfastError("MACHINE_UNREACHABLE", "The service's primary is changing. Try again in a moment.");
        await sleep(lookEveryMs, undefined, { signal });
      }
    },
  };
}

/** Has the primary changed, or is it about to? */
function isElsewhere(before: ManagedServiceObject, now: ManagedServiceObject): boolean {
  return now.spec.succession !== undefined || now.status.term > before.status.term;
}

function outputOf<C extends Case>({ output }: TaskResult, input: Extract<TaskInput, { case: C }>): OutputOf<C> {
  const asked: TaskInput = input;
  if (output.case !== asked.case) throw new Error(`${asked.case} was answered with ${output.case}`);
  return output.value as OutputOf<C>;
}
