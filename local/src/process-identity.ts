import { bootId, statOf } from "@holdfast/compute/local/process-identity.ts";

/** Names one process for good: pids are used again, on this boot and the next. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks from boot to its start. */
  readonly startTime: string;
  readonly bootId: string;
}

/** Identity of a running process; undefined when there is none with this pid. */
export function identify(pid: number): ProcessIdentity | undefined {
  const stat = statOf(pid);
  if (stat === undefined || stat.state === "Z") return undefined;
  return { pid, startTime: stat.startTicks, bootId: bootId() };
}

/** True when exactly this process still runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  const now = identify(identity.pid);
  return now?.startTime === identity.startTime && now.bootId === identity.bootId;
}
