import assert from "node:assert/strict";

/** Sends a signal to a process that may be gone already; anything but that is thrown. */
export function killQuietly(pid: number, signal: NodeJS.Signals): void {
  assert(pid > 0, "zero stands for the own group of processes");
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
