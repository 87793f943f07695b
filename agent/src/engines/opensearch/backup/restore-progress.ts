import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../../engine-driver.ts";
import { readFigures } from "../figures.ts";

const intervalMs = 5_000;

/** Reports the bytes of the shards that the member has, until the work ends: it may take hours. */
export async function whileReporting<T>(
  instance: Instance,
  report: (bytes: number) => void,
  work: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const ended = new AbortController();
  const either = AbortSignal.any([signal, ended.signal]);
  const poll = async () => {
    while (!either.aborted) {
      await sleep(intervalMs, undefined, { signal: either });
      report((await readFigures(instance, either)).dataBytes);
    }
  };
  // Without a report the restore continues; its own call has the error of an engine that ended.
  const polling = poll().catch(() => undefined);
  try {
    return await work();
  } finally {
    ended.abort();
    await polling;
  }
}
