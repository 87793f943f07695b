import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";

/** Sends the signal to each of these processes. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) killImmediately(pid, signal);
}
