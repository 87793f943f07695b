import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../../engine-driver.ts";
import { call } from "../api.ts";

const intervalMs = 5_000;

interface ShardRecovery {
  readonly index: { readonly size: { readonly recovered_in_bytes: number } };
}

/** Reports the restored bytes of the shards that the engine restores, until the work ends: it may take hours. */
export async function whileReporting<T>(
  instance: Instance,
  report: (recoveredBytes: number) => void,
  work: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const ended = new AbortController();
  const either = AbortSignal.any([signal, ended.signal]);
  const poll = async () => {
    while (!either.aborted) {
      await sleep(intervalMs, undefined, { signal: either });
      report(await recoveredBytes(instance, either));
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

async function recoveredBytes(instance: Instance, signal: AbortSignal): Promise<number> {
  const path = "/_recovery?active_only=true&expand_wildcards=all";
  const answer = (await call(instance, { method: "GET", path }, signal)) as Readonly<
    Record<string, { readonly shards: readonly ShardRecovery[] }>
  >;
  return Object.values(answer)
    .flatMap(({ shards }) => shards)
    .reduce((sum, { index }) => sum + index.size.recovered_in_bytes, 0);
}
