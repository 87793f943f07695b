import { EngineBusy, EngineRefused } from "../engine-errors.ts";
import { codeOf, messageOf } from "./session.ts";

/** Classes of SQLSTATE that are the engine's no to what was asked; the rest are faults of ours or of the machine. */
const refusals = ["0A", "22", "23", "2B", "3D", "42", "55"];

/** lock_not_available and query_canceled: the engine ended the statement at its bound, and nothing of it is left. */
const busy = ["55P03", "57014"];

/** The error to throw: EngineRefused or EngineBusy in the engine's words for a no, else the error as it is. */
export function refusalOf(error: unknown): unknown {
  if (busy.includes(codeOf(error))) return new EngineBusy(messageOf(error), { cause: error });
  return refusals.includes(codeOf(error).slice(0, 2)) ? new EngineRefused(messageOf(error), { cause: error }) : error;
}
