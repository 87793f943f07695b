import { runRestoreWalk, type WalkOptions, type WalkResult } from "./restore-walk.ts";

/** Runs a walk; one that fails has its steps in its error. */
export async function walkUnderTest(options: Omit<WalkOptions, "say">): Promise<WalkResult> {
  const story: string[] = [];
  try {
    return await runRestoreWalk({ ...options, say: (line) => story.push(line) });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`${message}\n${story.join("\n")}`, { cause: error });
  }
}
