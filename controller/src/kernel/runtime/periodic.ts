import { again } from "./reconciler.ts";
import type { ControlLoop } from "./runner.ts";

/**
 * Periodic work, such as a sweep, that one controller at a time does. It also runs when another controller takes over.
 */
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
