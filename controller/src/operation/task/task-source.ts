import type { Call } from "@holdfast/common/call.ts";
import type { TaskRef } from "./task-ids.ts";

/** Reads the tasks of one type. Each feature whose RPCs return task ids has a source. */
export interface TaskSource {
  /** Type in the API, such as `queue_enqueue`. */
  readonly type: string;
  /** Scope that callers need, the same as for the method that returns the ids. */
  readonly scope: string;
  /**
   * The record of a task; undefined if there is none. Sources retain tasks for at most 24 hours after the start, and
   * return none of services that are not in the caller's organization any more.
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
