import { readFileSync, renameSync, writeFileSync } from "node:fs";
import type { CageTrace } from "./cage.ts";

/** Writes the trace of what runs now: whoever reads it, whenever this process is killed, finds it whole or not at all. */
export function writeTrace(path: string, trace: CageTrace): void {
  writeFileSync(`${path}.new`, JSON.stringify(trace), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Undefined where there is none, and for one that a loss of power cut off: nothing that ran then is left. */
export function readTrace(path: string): CageTrace | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as CageTrace;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
