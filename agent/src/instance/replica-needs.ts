import { setTimeout as sleep } from "node:timers/promises";
import { effectiveParameters } from "../engines/effective-parameters.ts";
import type { EngineDriver, Instance } from "../engines/engine-driver.ts";
import { roleOf } from "../engines/members.ts";

const looks = 25;
const lookMs = 200;

/** A replica with less than its primary had of some parameters does not start: it gets as much of them. */
export async function withNeeds(driver: EngineDriver, instance: Instance, signal: AbortSignal): Promise<Instance> {
  const facet = roleOf(instance.spec) === "replica" ? driver.replication : undefined;
  const atLeast = await facet?.needs?.(instance, signal);
  return atLeast === undefined ? instance : { ...instance, atLeast };
}

/**
 * What falls on the primary first is known to a replica once that has replayed it: one that restarts before would keep
 * it. It waits for 5 s at most, as others may never fall.
 */
export async function untilNoneNeeded(driver: EngineDriver, instance: Instance, signal: AbortSignal): Promise<void> {
  const wanted = effectiveParameters(instance);
  for (let look = 0; look < looks; look += 1) {
    const { atLeast = {} } = await withNeeds(driver, instance, signal);
    if (Object.entries(atLeast).every(([name, least]) => Number(wanted.get(name)) >= least)) return;
    await sleep(lookMs, undefined, { signal });
  }
}
