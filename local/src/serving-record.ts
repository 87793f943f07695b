import { rmSync } from "node:fs";
import { join } from "node:path";
import { readJson, replaceFileSync } from "./files.ts";
import { identify, isRunning, type RecordedProcess } from "./recorded-process.ts";

interface ServingRecord {
  readonly process: RecordedProcess;
  /** Root directory of its code. */
  readonly checkout: string;
}

const pathOf = (runDir: string) => join(runDir, "serving.json");

/** Records that this supervisor has started everything, and from which code. Returns the function that ends it. */
export function recordServing(runDir: string, checkout: string): () => void {
  replaceFileSync(pathOf(runDir), JSON.stringify({ process: identify(process.pid), checkout }), 0o644);
  return () => rmSync(pathOf(runDir), { force: true });
}

/** Root directory of the code of the supervisor that runs and has started everything; undefined if there is none. */
export function servingCode(runDir: string): string | undefined {
  const record = readJson<ServingRecord>(pathOf(runDir));
  return record !== undefined && isRunning(record.process) ? record.checkout : undefined;
}
