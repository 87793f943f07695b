import type { MachineFacts } from "@holdfast/compute/compute-provider.ts";
import { isUp, type MachineObject } from "./machine.ts";

/** Observations of a machine that are only in memory. Times are of the monotonic clock. */
export interface MachineMemory {
  readonly silentSince: number | undefined;
  readonly crashes: readonly number[];
  /** Time of the last crash, in milliseconds since 1970; undefined before the first one. */
  readonly crashedAt: number | undefined;
  /** True from the start of the machine by this controller until it is stopped, or until its crash is counted. */
  readonly started: boolean;
  /** Start counter (MachineFacts) of the run whose crash was counted last; undefined before the first one. */
  readonly crashedRun: number | undefined;
  /** True if this controller delivered the stored enrollment to the machine. */
  readonly enrollmentDelivered: boolean;
}

export const emptyMemory: MachineMemory = {
  started: false,
  crashedRun: undefined,
  silentSince: undefined,
  crashes: [],
  crashedAt: undefined,
  enrollmentDelivered: false,
};

/** True if a machine that should run ended while it was up by the stored state, or since this controller started it. */
export function isCrashed(machine: MachineObject, facts: MachineFacts | undefined, started = false): boolean {
  const { metadata, spec } = machine;
  const shouldRun = spec.power === "on" && metadata.deletionRequestedAt === undefined;
  return shouldRun && (started || isUp(machine)) && facts?.state === "stopped";
}

/** Each run crashes at most once. The stored state alone does not tell, because the cache may lag behind its change. */
export function hasUncountedCrash(
  machine: MachineObject,
  facts: MachineFacts | undefined,
  { started, crashedRun }: MachineMemory,
): boolean {
  return isCrashed(machine, facts, started) && facts?.starts !== crashedRun;
}
