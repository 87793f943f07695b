import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  Lane,
  type Task,
  TaskClass,
  type TaskResult,
  TaskResultSchema,
  TaskSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { TaskRequest } from "./task.ts";

const lanes = { control: Lane.CONTROL, query: Lane.QUERY, bulk: Lane.BULK } as const;

/** The task as it goes to the agent. */
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

/** The result of a task that ended without its agent's word. */
export function failedResult(taskId: string, code: string, message: string): TaskResult {
  return create(TaskResultSchema, { taskId, failure: { code, message, retryable: code !== "cancelled" } });
}
