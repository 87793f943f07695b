import { again } from "./reconciler.ts";
import type { ControlLoop } from "./runner.ts";

/** Work that one controller does now and then, such as sweeping; also once when it takes over. */
export function createPeriodic(
  name: string,
  everyMs: number,
  run: (signal: AbortSignal) => Promise<void>,
): ControlLoop {
  return {
    reconciler: {
      name,
      async reconcile(_key, signal) {
        await run(signal);
        return again(everyMs, "the next time");
      },
    },
    keys: () => [name],
    concurrency: 1,
    deadlineMs: 15 * 60_000,
  };
}
