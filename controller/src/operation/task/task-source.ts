import type { Call } from "@holdfast/common/call.ts";
import type { TaskRef } from "./task-ids.ts";

/** Looks up the tasks of one type. Each feature that answers with task ids has one. */
export interface TaskSource {
  /** Shown to users, such as "queue_enqueue". */
  readonly type: string;
  /** Scope of the method that hands the ids out. */
  readonly scope: string;
  /**
   * The record of a task. Undefined for a missing task: 24 hours after its start at the latest, and when its service
   * has left the caller's organization.
   */
  read(ref: TaskRef, call: Call): Promise<TaskRecord | undefined>;
}

export interface TaskRecord {
  readonly status: "pending" | "running" | "completed" | "failed";
  /** JSON text of the result of a completed task. */
  readonly result: string | undefined;
  /** Of a failed task. */
  readonly error: { readonly code: string; readonly message: string } | undefined;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly finishedAt: number | undefined;
}
