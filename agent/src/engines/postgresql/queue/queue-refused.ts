import { EngineBusy, EngineRefused, type RefusalCode } from "../../engine-errors.ts";
import { codeOf, messageOf, refusalOf } from "../session.ts";
import { refusals } from "./schema/names.ts";

export type QueueRefusalCode =
  | "queue_not_active"
  | "queue_exists"
  | "payload_not_valid"
  | "payload_too_large"
  | "out_of_range"
  /** The schema, an object in it, or one of its roles belongs to a user. */
  | "schema_not_owned"
  /** A task with this id exists and has another body. */
  | "task_conflict";

/** The request was refused, with a message that users can read. Nothing was changed. */
export class QueueRefused extends EngineRefused {
  readonly queueCode: QueueRefusalCode;

  constructor(queueCode: QueueRefusalCode, message: string, options: { cause?: unknown } = {}) {
    super(message, { ...options, code: engineCodes[queueCode] });
    this.queueCode = queueCode;
  }
}

/** Codes that the controller receives. */
const engineCodes: Readonly<Record<QueueRefusalCode, RefusalCode>> = {
  queue_not_active: "queue_not_active",
  queue_exists: "name_taken",
  payload_not_valid: "payload_not_valid",
  payload_too_large: "payload_too_large",
  out_of_range: "out_of_range",
  schema_not_owned: "engine_refused",
  task_conflict: "task_conflict",
};

const codes: ReadonlyMap<string, QueueRefusalCode> = new Map(
  Object.entries<QueueRefusalCode>({
    [refusals.queueNotActive]: "queue_not_active",
    [refusals.payloadNotObject]: "payload_not_valid",
    [refusals.payloadTooLarge]: "payload_too_large",
    [refusals.outOfRange]: "out_of_range",
    // Invalid JSON, a NUL in a string, a number beyond the range of numeric, text over 1 GB.
    "22P02": "payload_not_valid",
    "22P05": "payload_not_valid",
    "22003": "payload_not_valid",
    "54000": "payload_too_large",
  }),
);

const diskFull = "53100";

/** SQLSTATE of serialization failures and deadlocks: nothing was changed, and a retry may succeed. */
const conflicts = ["40001", "40P01"];

/** Runs work on the schema of queues. Throws QueueRefused, EngineRefused or EngineBusy if the engine refuses. */
export async function mapRefusals<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof EngineRefused) throw error;
    const code = codes.get(codeOf(error));
    if (code !== undefined) throw new QueueRefused(code, messageOf(error), { cause: error });
    if (codeOf(error) === diskFull)
      throw new EngineRefused("The disk is full. Expand the storage.", { code: "no_room", cause: error });
    if (conflicts.includes(codeOf(error))) throw new EngineBusy(messageOf(error), { cause: error });
    throw refusalOf(error);
  }
}
