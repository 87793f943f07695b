import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../engine-driver.ts";
import type { Connection } from "./protocol/connection.ts";
import { withAllSessions } from "./session.ts";

const appliedWithinMs = 10_000;
const pollMs = 20;

/** A broker applies a change some milliseconds after the controller committed it. */
export async function untilApplied(
  signal: AbortSignal,
  isApplied: () => Promise<boolean>,
  withinMs = appliedWithinMs,
): Promise<void> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  while (!(await isApplied())) await sleep(pollMs, undefined, { signal: limit });
}

/** Waits for each broker that responds. One that does not reads the metadata before it serves clients again. */
export function untilAppliedEverywhere(
  instance: Instance,
  signal: AbortSignal,
  isApplied: (session: Connection) => Promise<boolean>,
): Promise<void> {
  return withAllSessions(instance, signal, ([own, ...others]) =>
    untilApplied(signal, async () => {
      const found = await Promise.all([isApplied(own), ...others.map((each) => isApplied(each).catch(() => true))]);
      return found.every(Boolean);
    }),
  );
}
