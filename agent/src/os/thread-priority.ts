import { readdirSync } from "node:fs";
import { constants, setPriority } from "node:os";

const noSuchThread = -constants.errno.ESRCH;

/**
 * Sets the nice value (-20 to 19) of every thread of this process. Linux has one for each thread, and running threads
 * do not follow the main thread's. A thread that has ended is skipped.
 */
export function setThreadPriorities(priority: number, threads = readdirSync("/proc/self/task")): void {
  for (const thread of threads) {
    try {
      setPriority(Number(thread), priority);
    } catch (error) {
      if (!(error instanceof Error && "errno" in error && error.errno === noSuchThread)) throw error;
    }
  }
}
