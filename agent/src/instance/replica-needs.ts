import { setTimeout as sleep } from "node:timers/promises";
import { effectiveParameters } from "../engines/effective-parameters.ts";
import type { EngineDriver, Instance } from "../engines/engine-driver.ts";
import { roleOf } from "../engines/members.ts";

const looks = 25;
const lookMs = 200;

/** An engine with less of some parameters than its data need does not start: it gets as much of them. */
export async function withNeeds(driver: EngineDriver, instance: Instance, signal: AbortSignal): Promise<Instance> {
  const atLeast = await driver.replication?.needs?.(instance, signal);
  return atLeast === undefined ? instance : { ...instance, atLeast };
}

/** Do the data need more of a parameter by now than the engine was started with? */
export function needsMore({ atLeast = {} }: Instance, started: Instance): boolean {
  const had = effectiveParameters(started);
  return Object.entries(atLeast).some(([name, least]) => Number(had.get(name)) < least);
}

/**
 * What falls on the primary first is known to a replica once that has replayed it: one that restarts before would keep
 * it. It waits for 5 s at most, as others may never fall.
 */
export async function untilNoneNeeded(driver: EngineDriver, instance: Instance, signal: AbortSignal): Promise<void> {
  if (roleOf(instance.spec) !== "replica") return;
  const wanted = effectiveParameters(instance);
  for (let look = 0; look < looks; look += 1) {
    const { atLeast = {} } = await withNeeds(driver, instance, signal);
    if (Object.entries(atLeast).every(([name, least]) => Number(wanted.get(name)) >= least)) return;
    await sleep(lookMs, undefined, { signal });
  }
}
