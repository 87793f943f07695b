import type { Resource } from "#kernel/store/resource.ts";
import type { TaskStateName } from "./task-lifecycle.ts";
import { defineKind } from "#kernel/store/kind.ts";

/** A durable task as the store has it. */
export type TaskObject = Resource<TaskSpecObject, TaskStatusObject>;

export const taskKind = defineKind<TaskObject>("task");

export interface TaskSpecObject {
  readonly machineId: string;
  /** Case of the input, such as "convergeInstance". */
  readonly kind: string;
  readonly ownerId: string;
  readonly generation: number;
  readonly term: number;
  readonly lane: "control" | "query" | "bulk" | "queue";
  /** Milliseconds since 1970. */
  readonly deadlineAt: number;
  /** The holdfast.agent.v1.Task. */
  readonly task: StoredMessage;
}

export interface TaskStatusObject {
  readonly state: TaskStateName;
  readonly progress: { readonly step: string; readonly progressPct: number } | null;
  /** The holdfast.agent.v1.TaskResult of a task that ended. */
  readonly result: StoredMessage | null;
  readonly finishedAt: number | null;
  readonly cancelRequestedAt: number | null;
}

/** A message as proto JSON with its sensitive fields sealed: as text, or the payload that holds the text. */
export type StoredMessage =
  | { readonly json: string }
  | { readonly payloadId: string; readonly sizeBytes: number; readonly sha256: string };

/** Is an outcome still to come? */
export function isOpen(task: TaskObject): boolean {
  return task.status.state === "pending" || task.status.state === "running";
}
