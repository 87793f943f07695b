import { create } from "@bufbuild/protobuf";
import { type TaskFailure, TaskFailureSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { EngineBusy, EngineRefused, type RefusalCode } from "./engines/engine-errors.ts";

/** Codes of a failed task, which the controller reads. */
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
  /** The machine has too little memory or disk space. */
  | "no_room"
  | "invalid_task"
  | "failed";

/** The reason why a task failed. */
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
