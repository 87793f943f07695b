import type { TaskProgress } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { Task, TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

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
