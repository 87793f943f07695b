import { create } from "@bufbuild/protobuf";
import { type TaskFailure, TaskFailureSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { EngineBusy, EngineRefused, type RefusalCode } from "./engines/engine-errors.ts";

/** Codes that a failure can have; whoever gave the task reads them. */
export type TaskFailureCode =
  | "stale_term"
  | "superseded"
  | "not_supported"
  | RefusalCode
  | "engine_busy"
  | "not_ready"
  | "deadline_exceeded"
  | "cancelled"
  | "payload_corrupt"
  /** More is asked of queues than their sessions and the stream have room for. */
  /** The machine has not enough memory or disk for it. */
  | "no_room"
  | "invalid_task"
  | "failed";

/** Why a task did not happen. */
export class TaskFailed extends Error {
  override readonly name = "TaskFailed";
  readonly code: TaskFailureCode;
  readonly retryable: boolean;

  constructor(code: TaskFailureCode, message: string, { retryable = false } = {}) {
    super(message);
    this.code = code;
    this.retryable = retryable;
  }

  static from(error: unknown, signal?: AbortSignal): TaskFailed {
    if (error instanceof TaskFailed) return error;
    if (signal?.aborted && signal.reason instanceof TaskFailed) return signal.reason;
    if (error instanceof EngineRefused) return new TaskFailed(error.code, error.message);
    if (error instanceof EngineBusy) return new TaskFailed("engine_busy", error.message, { retryable: true });
    return new TaskFailed("failed", error instanceof Error ? error.message : String(error), { retryable: true });
  }

  get failure(): TaskFailure {
    return create(TaskFailureSchema, { code: this.code, message: this.message, retryable: this.retryable });
  }
}
