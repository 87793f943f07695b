import type { Resource } from "#kernel/store/resource.ts";
import type { TaskStateName } from "./task-lifecycle.ts";
import { defineKind } from "#kernel/store/kind.ts";

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
