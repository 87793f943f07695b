import { type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { TaskInput } from "../fleet/task/task.ts";
import { type ManagedServiceObject, primaryOf } from "./managed-service.ts";

/** What an engine must take is answered within this time (docs/api.md, what comes out). */
export const engineTimeoutMs = 15_000;

type Case = Exclude<TaskInput["case"], undefined>;
type OutputOf<C> = Extract<TaskResult["output"], { case: C }> extends { value: infer V } ? V : never;

// Codes of task failures that mean something to a user.
// biome-ignore format: a table, aligned so that it reads as one
const failures: Readonly<Record<string, ErrorKey>> = {
  engine_refused: "ENGINE_REFUSED",
  not_supported:  "NOT_SUPPORTED",
};

/** Runs tasks on the primary of a service. */
export interface EngineTasks {
  /** Throws MACHINE_UNREACHABLE when no answer came, ENGINE_REFUSED and NOT_SUPPORTED as the agent says. */
  run<C extends Case>(
    service: ManagedServiceObject,
    input: Extract<TaskInput, { case: C }>,
    signal: AbortSignal,
  ): Promise<OutputOf<C>>;
}

export function createEngineTasks({ fleet }: { fleet: Fleet }): EngineTasks {
  return {
    async run<C extends Case>(
      service: ManagedServiceObject,
      input: Extract<TaskInput, { case: C }>,
      signal: AbortSignal,
    ) {
      const result = await fleet.run(
        primaryOf(service).id,
        {
          ownerId: service.metadata.id,
          generation: service.spec.instanceGeneration,
          term: service.status.term,
          lane: "query",
          input,
          deadlineMs: engineTimeoutMs,
        },
        engineTimeoutMs,
        signal,
      );
      if (result.failure !== undefined) {
        const { code, message } = result.failure;
        throw new HoldfastError(failures[code] ?? "MACHINE_UNREACHABLE", message);
      }
      const asked: TaskInput = input;
      if (result.output.case !== asked.case) throw new Error(`${asked.case} was answered with ${result.output.case}`);
      return result.output.value as OutputOf<C>;
    },
  };
}
