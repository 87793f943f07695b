import { BackupDamaged } from "@holdfast/common/backup/backup-reader.ts";
import { failureMessage } from "@holdfast/common/backup/failure-message.ts";
import { isSystemError } from "@holdfast/common/system-error.ts";
import { PlanTooSmall, SourceRefused, SourceUnreadable, TargetNotReached } from "../engines/backup-facet.ts";
import { ProgramFailed } from "../os/program.ts";
import { StoreRefused } from "./store-client.ts";

export type JobFailure =
  | "cancelled"
  | "source_failed"
  | "source_refused"
  | "source_unreadable"
  | "store_failed"
  | "no_room"
  | "damaged"
  | "absent"
  | "target_not_reached"
  | "plan_too_small"
  | "failed";

/** The reason why a job failed. */
export class JobFailed extends Error {
  override readonly name = "JobFailed";
  readonly code: JobFailure;
  /** Key of the object that is lost or changed, with the code "damaged". */
  readonly object: string | undefined;
  /** Memory of a machine that can replay the log, with the code "plan_too_small"; 0 if that is unknown. */
  readonly requiredMemoryBytes: number;

  constructor(
    code: JobFailure,
    message: string,
    {
      object,
      requiredMemoryBytes = 0,
      ...options
    }: ErrorOptions & { object?: string | undefined; requiredMemoryBytes?: number } = {},
  ) {
    super(message, options);
    this.code = code;
    this.object = object;
    this.requiredMemoryBytes = requiredMemoryBytes;
  }

  /** Converts an error: errors with a code of their own get it, all others get `code`. */
  static from(code: JobFailure, error: unknown): JobFailed {
    if (error instanceof JobFailed) return error;
    const text = error instanceof Error ? error.message : String(error);
    // The operating system's message is for the log, which has the cause.
    const message = isSystemError(error) ? failureMessage(code, text) : text;
    if (error instanceof BackupDamaged)
      return new JobFailed("damaged", message, { cause: error, object: error.object });
    if (error instanceof TargetNotReached) return new JobFailed("target_not_reached", message, { cause: error });
    if (error instanceof PlanTooSmall) {
      const { requiredBytes: requiredMemoryBytes } = error;
      return new JobFailed("plan_too_small", message, { cause: error, requiredMemoryBytes });
    }
    if (error instanceof SourceUnreadable) return new JobFailed("source_unreadable", message, { cause: error });
    if (error instanceof StoreRefused) return new JobFailed("store_failed", message, { cause: error });
    const output = error instanceof ProgramFailed ? error.output : text;
    if (/ENOSPC|No space left on device/.test(output))
      return new JobFailed("no_room", failureMessage("no_room", text), { cause: error });
    if (error instanceof SourceRefused) return new JobFailed("source_refused", message, { cause: error });
    return new JobFailed(code, message, { cause: error });
  }
}
