import { killAtOnce } from "@holdfast/test/support/platform/platform-processes.ts";

/** Sends each of these processes the signal. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) killAtOnce(pid, signal);
}
