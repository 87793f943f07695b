import assert from "node:assert/strict";

/** Sends a signal to a process, and ignores that it has ended already. Throws any other failure. */
export function signalIfAlive(pid: number, signal: NodeJS.Signals): void {
  assert(pid > 0, "zero stands for the own group of processes");
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
