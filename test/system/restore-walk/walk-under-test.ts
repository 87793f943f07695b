import { runRestoreWalk, type WalkOptions, type WalkResult } from "./restore-walk.ts";

/** Runs a walk; the error of a failed one contains its steps. */
export async function walkUnderTest(options: Omit<WalkOptions, "say">): Promise<WalkResult> {
  const lines: string[] = [];
  try {
    return await runRestoreWalk({ ...options, log: (line) => lines.push(line) });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`${message}\n${lines.join("\n")}`, { cause: error });
  }
}
