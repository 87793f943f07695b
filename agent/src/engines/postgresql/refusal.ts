import { EngineRefused } from "../engine-driver.ts";
import { codeOf, messageOf } from "./session.ts";

/** Classes of SQLSTATE that are the engine's no to what was asked; the rest are faults of ours or of the machine. */
const refusals = ["0A", "22", "23", "2B", "3D", "42", "55"];

/** The error to throw: EngineRefused in the engine's words for a no, else the error as it is. */
export function refusalOf(error: unknown): unknown {
  return refusals.includes(codeOf(error).slice(0, 2)) ? new EngineRefused(messageOf(error), { cause: error }) : error;
}
