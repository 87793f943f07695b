import type { Call } from "@holdfast/common/call.ts";
import type { TaskRef } from "./task-ids.ts";

/** Reads the tasks of one type. Each feature whose RPCs return task ids has one. */
export interface TaskSource {
  /** Type in the API, such as "queue_enqueue". */
  readonly type: string;
  /** Scope of the method that returns the ids. */
  readonly scope: string;
  /**
   * The record of a task. Undefined for a missing one: at the latest 24 hours after its start, and when its service has
   * left the caller's organization.
   */
  read(ref: TaskRef, call: Call): Promise<TaskRecord | undefined>;
}

export interface TaskRecord {
  readonly status: "pending" | "running" | "completed" | "failed";
  /** Result of a completed task, as JSON. */
  readonly result: string | undefined;
  /** Error of a failed task. */
  readonly error: { readonly code: string; readonly message: string } | undefined;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly finishedAt: number | undefined;
}
