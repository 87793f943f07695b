import { readFileSync, renameSync, writeFileSync } from "node:fs";
import type { SandboxTrace } from "./sandbox.ts";

/** Writes the trace atomically: a reader finds the complete trace or none, whenever this process is killed. */
export function writeTrace(path: string, trace: SandboxTrace): void {
  writeFileSync(`${path}.new`, JSON.stringify(trace), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Undefined if there is no trace, or if a power failure truncated it, which no process survives. */
export function readTrace(path: string): SandboxTrace | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as SandboxTrace;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
