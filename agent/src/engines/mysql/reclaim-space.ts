import type { Instance, WritableSpace } from "../engine-driver.ts";
import { withSession } from "./session.ts";

/** Share of free disk space below which binary logs of earlier hours are removed. */
const tightShare = 1 / 6;
const pauseMs = 10_000;

/**
 * Creates a function that removes all binary logs except the current one from a nearly full disk. `now` is a monotonic
 * clock in milliseconds. The function never throws: if it gains no space, the disk guard blocks writes.
 */
export function createSpaceReclaimer(now: () => number) {
  let nextAtMs = Number.NEGATIVE_INFINITY;
  return async (
    instance: Instance,
    { totalBytes, writableBytes }: WritableSpace,
    signal: AbortSignal,
  ): Promise<void> => {
    if (writableBytes >= totalBytes * tightShare || now() < nextAtMs) return;
    nextAtMs = now() + pauseMs;
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(pauseMs)]);
    await withSession(instance, bounded, async (session) => {
      const logs = await session.rows<{ Log_name: string }>("SHOW BINARY LOGS");
      const current = logs.at(-1)?.Log_name;
      if (current !== undefined && logs.length > 1) await session.rows("PURGE BINARY LOGS TO ?", [current]);
    }).catch(() => undefined);
  };
}
