import { hasCode } from "@holdfast/common/system-error.ts";

/** Sends a signal to a process that may be gone already; anything but that is thrown. */
export function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error;
  }
}
