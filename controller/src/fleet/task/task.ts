import type { TaskProgress } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import {
  Lane,
  type Task,
  TaskClass,
  type TaskResult,
  TaskResultSchema,
  TaskSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";
import type { TaskStateName } from "./task-lifecycle.ts";

/** Input of a task, by kind: `{ case: "listEngineUsers", value: {...} }`. */
export type TaskInput = Task["input"];

/** A request to an agent, on behalf of an owner such as a service. */
export interface TaskRequest {
  readonly ownerId: string;
  readonly generation: number;
  readonly term: number;
  readonly lane: "control" | "query" | "bulk" | "queue";
  readonly input: TaskInput;
  /** Time until the deadline, from the submission on. */
  readonly deadlineMs: number;
  /** Stores a durable task only if this key of the store has this revision. */
  readonly onlyWhile?: { readonly key: string; readonly modRevision: bigint };
}

/** State of a durable task. */
export interface TaskState {
  readonly status: "pending" | "running" | "completed" | "failed";
  readonly progress: TaskProgress | undefined;
  readonly result: TaskResult | undefined;
}

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

/** A durable task in the store. */
export type TaskObject = Resource<TaskSpecObject, TaskStatusObject>;

export const taskKind = defineKind<TaskObject>("task");

export interface TaskSpecObject {
  readonly machineId: string;
  /** Case of the input in the proto, such as `convergeInstance`. */
  readonly kind: string;
  readonly ownerId: string;
  readonly generation: number;
  readonly term: number;
  readonly lane: "control" | "query" | "bulk" | "queue";
  /** Milliseconds since 1970. */
  readonly deadlineAt: number;
  /** The task as a holdfast.agent.v1.Task. */
  readonly task: StoredMessage;
}

export interface TaskStatusObject {
  readonly state: TaskStateName;
  readonly progress: { readonly step: string; readonly progressPct: number } | null;
  /** The result of an ended task as a holdfast.agent.v1.TaskResult. */
  readonly result: StoredMessage | null;
  readonly finishedAt: number | null;
  readonly cancelRequestedAt: number | null;
}

/** A message as proto JSON with sealed sensitive fields: the text, or a reference to the payload with the text. */
export type StoredMessage =
  | { readonly json: string }
  | { readonly payloadId: string; readonly sizeBytes: number; readonly sha256: string };

/** True if the task has not ended. */
export function isOpen(task: TaskObject): boolean {
  return task.status.state === "pending" || task.status.state === "running";
}
