import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  Lane,
  type Task,
  TaskClass,
  type TaskResult,
  TaskResultSchema,
  TaskSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { TaskRequest } from "./task.ts";

const lanes = { control: Lane.CONTROL, query: Lane.QUERY, bulk: Lane.BULK, queue: Lane.QUEUE } as const;

/** The message of a task for the agent. `deadlineAt` is in milliseconds since 1970. */
export function taskMessage(id: string, request: TaskRequest, deadlineAt: number, taskClass: TaskClass): Task {
  return create(TaskSchema, {
    id,
    ownerId: request.ownerId,
    generation: BigInt(request.generation),
    term: BigInt(request.term),
    deadline: timestampFromMs(deadlineAt),
    lane: lanes[request.lane],
    class: taskClass,
    input: request.input,
  });
}

/** The task with the remaining time until its deadline, so that the clocks of controller and agent need not agree. */
export function sentNow(task: Task, now: number): Task {
  const deadlineAt = task.deadline === undefined ? now : timestampMs(task.deadline);
  // 0 means absent in the proto. An agent refuses a task whose time has passed.
  return { ...task, withinMs: BigInt(Math.max(1, Math.ceil(deadlineAt - now))) };
}

/** The result of a task that ended without a result of its agent. */
export function failedResult(taskId: string, code: string, message: string): TaskResult {
  return create(TaskResultSchema, { taskId, failure: { code, message, retryable: code !== "cancelled" } });
}
