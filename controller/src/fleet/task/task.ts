import type { TaskProgress } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { Task, TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

/** Input of a task, by kind: `{ case: "listEngineUsers", value: {...} }`. */
export type TaskInput = Task["input"];

/** What an agent is asked to do, and for whom. */
export interface TaskRequest {
  readonly ownerId: string;
  readonly generation: number;
  readonly term: number;
  readonly lane: "control" | "query" | "bulk" | "queue";
  readonly input: TaskInput;
  /** From when it is submitted. */
  readonly deadlineMs: number;
  /** A durable task is recorded only while this key of the store has this revision. */
  readonly onlyWhile?: { readonly key: string; readonly modRevision: bigint };
}

/** What became of a durable task so far. */
export interface TaskState {
  readonly status: "pending" | "running" | "completed" | "failed";
  readonly progress: TaskProgress | undefined;
  readonly result: TaskResult | undefined;
}
