export type RefusalCode =
  | "engine_refused"
  | "name_taken"
  | "database_user_not_found"
  | "not_possible"
  | "topic_not_found"
  | "group_not_found"
  /** A consumer group has members. */
  | "group_active"
  /** A limit of the service's plan. */
  | "limit_reached"
  | "queue_not_active"
  | "payload_not_valid"
  | "payload_too_large"
  | "out_of_range"
  /** The disk is full, or so nearly that writes are blocked. */
  | "no_room"
  /** A task with this id exists and has another body. */
  | "task_conflict";

/** The engine refused the request, with a message that users can read. Nothing was changed. */
export class EngineRefused extends Error {
  override readonly name = "EngineRefused";
  readonly code: RefusalCode;

  constructor(message: string, { code = "engine_refused", cause }: { code?: RefusalCode; cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** The engine gave up waiting for a lock or a running command. Nothing was changed; a retry may succeed. */
export class EngineBusy extends Error {
  override readonly name = "EngineBusy";
}
