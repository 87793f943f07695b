import type { Call } from "@holdfast/common/call.ts";
import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { TaskInput, TaskObject } from "#fleet/task/task.ts";
import type { TaskIds, TaskRef } from "#operation/task/task-ids.ts";
import type { TaskSource } from "#operation/task/asynchronous-tasks.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import type { ServiceAccess } from "./service-access.ts";
import { taskTarget } from "./member/member-roles.ts";

export interface MachineTaskDeps {
  readonly fleet: Pick<Fleet, "submit" | "task">;
  readonly tasks: Pick<Collection<TaskObject>, "get">;
  readonly access: Pick<ServiceAccess, "find">;
  readonly ids: TaskIds;
  /** Returns a random key, because users see the ids. */
  readonly newKey: () => string;
}

/** Asynchronous tasks of one type that run as durable tasks of a service's machine. Both end within 24 hours. */
export interface MachineTasks {
  readonly source: TaskSource;
  /** Stores the task for the service's primary and resolves to the id for the caller. */
  submit(service: ManagedServiceObject, input: TaskInput, deadlineMs: number, call: Call): Promise<string>;
}

/** `resultOf` builds the result (JSON) from the agent's response and the service. */
export function createMachineTasks(
  {
    type,
    scope,
    resultOf,
  }: Pick<TaskSource, "type" | "scope"> & {
    resultOf(output: TaskResult["output"], service: ManagedServiceObject): Promise<string> | string;
  },
  { fleet, tasks, access, ids, newKey }: MachineTaskDeps,
): MachineTasks {
  const taskIdOf = ({ key }: Pick<TaskRef, "key">) => `${type}-${key}`;
  return {
    async submit(service, input, deadlineMs, call) {
      const { id: serviceId } = service.metadata;
      const ref: TaskRef = { type, serviceId, key: newKey(), detail: "" };
      const generation = service.spec.instanceGeneration;
      const { term } = service.status;
      const request = { ownerId: serviceId, generation, term, lane: "query", input, deadlineMs } as const;
      await fleet.submit(taskTarget(service).id, taskIdOf(ref), request, call.signal);
      return ids.seal(call, ref);
    },
    source: {
      type,
      scope,
      async read(ref, call) {
        const object = tasks.get(taskIdOf(ref))?.object;
        const state = fleet.task(taskIdOf(ref));
        const isThere = object !== undefined && state !== undefined && object.spec.ownerId === ref.serviceId;
        const service = isThere ? access.find(ref.serviceId, call)?.object : undefined;
        if (!isThere || service === undefined) return undefined;
        const { createdAt } = object.metadata;
        const finishedAt = object.status.finishedAt ?? undefined;
        const error = state.result?.failure;
        const succeeded = state.status === "completed" && state.result !== undefined && error === undefined;
        const result = succeeded ? await resultOf(state.result.output, service) : undefined;
        return { status: state.status, result, error, createdAt, finishedAt };
      },
    },
  };
}
