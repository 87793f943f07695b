import { bootId, statOf } from "@holdfast/compute/local/process-identity.ts";
import { hasCode } from "@holdfast/common/system-error.ts";

/** Unique identity of a process, also across reboots: pids are reused. */
export interface RecordedProcess {
  readonly pid: number;
  /** Clock ticks from boot to its start. */
  readonly startTime: string;
  readonly bootId: string;
}

/** Identity of a running process; undefined if there is none with this pid. */
export function identify(pid: number): RecordedProcess | undefined {
  const stat = statOf(pid);
  if (stat === undefined || stat.state === "Z") return undefined;
  return { pid, startTime: stat.startTicks, bootId: bootId() };
}

/** True if exactly this process still runs. */
export function isRunning(identity: RecordedProcess): boolean {
  const now = identify(identity.pid);
  return now?.startTime === identity.startTime && now.bootId === identity.bootId;
}

/** Sends a signal to a process that may have ended; throws any other error. */
export function signalIfRunning(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error;
  }
}
