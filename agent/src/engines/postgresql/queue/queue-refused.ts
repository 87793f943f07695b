import { EngineBusy, EngineRefused, type RefusalCode } from "../../engine-errors.ts";
import { refusalOf } from "../refusal.ts";
import { codeOf, messageOf } from "../session.ts";
import { refusals } from "./schema/names.ts";

export type QueueRefusalCode =
  | "queue_not_active"
  | "queue_exists"
  | "payload_not_valid"
  | "payload_too_large"
  | "out_of_range"
  /** The schema, or something in it, or a role of ours, is somebody else's. */
  | "schema_not_ours"
  /** A task of this id was asked for with another body. */
  | "task_conflict";

/** Said no, in words that a user can read: nothing was changed. */
export class QueueRefused extends EngineRefused {
  readonly queueCode: QueueRefusalCode;

  constructor(queueCode: QueueRefusalCode, message: string, options: { cause?: unknown } = {}) {
    super(message, { ...options, code: told[queueCode] });
    this.queueCode = queueCode;
  }
}

/** What the agent's controller is told. */
const told: Readonly<Record<QueueRefusalCode, RefusalCode>> = {
  queue_not_active: "queue_not_active",
  queue_exists: "name_taken",
  payload_not_valid: "payload_not_valid",
  payload_too_large: "payload_too_large",
  out_of_range: "out_of_range",
  schema_not_ours: "engine_refused",
  task_conflict: "task_conflict",
};

const codes: ReadonlyMap<string, QueueRefusalCode> = new Map(
  Object.entries<QueueRefusalCode>({
    [refusals.queueNotActive]: "queue_not_active",
    [refusals.payloadNotObject]: "payload_not_valid",
    [refusals.payloadTooLarge]: "payload_too_large",
    [refusals.outOfRange]: "out_of_range",
    // Text that is no JSON, a NUL in it, a number that no numeric holds, text over 1 GB.
    "22P02": "payload_not_valid",
    "22P05": "payload_not_valid",
    "22003": "payload_not_valid",
    "54000": "payload_too_large",
  }),
);

const diskFull = "53100";

/** Deadlocks and conflicts of transactions: nothing was changed, and it works when asked again. */
const conflicts = ["40001", "40P01"];

/** Runs work in a queue's schema; throws QueueRefused, EngineRefused or EngineBusy for the engine's no. */
export async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof EngineRefused) throw error;
    const code = codes.get(codeOf(error));
    if (code !== undefined) throw new QueueRefused(code, messageOf(error), { cause: error });
    if (codeOf(error) === diskFull) throw new EngineRefused("the disk is full", { code: "no_room", cause: error });
    if (conflicts.includes(codeOf(error))) throw new EngineBusy(messageOf(error), { cause: error });
    throw refusalOf(error);
  }
}
