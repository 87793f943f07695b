import { setTimeout as sleep } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";

/** A rate limit for bytes that all sources share. Sources are served round-robin, each in the order of its requests. */
export interface PayloadRateLimit {
  /**
   * Resolves when the bytes may be transferred, never synchronously. Rejects if the signal aborts first; the bytes are
   * not charged then.
   */
  acquire(source: string, bytes: number, signal?: AbortSignal): Promise<void>;
}

interface WaitingTransfer {
  readonly bytes: number;
  readonly signal: AbortSignal | undefined;
  readonly done: PromiseWithResolvers<void>;
}

/** Creates the rate limit. It has no burst: idle time is not compensated by a higher rate later. */
export function createPayloadRateLimit(
  bytesPerSecond: number,
  monotonicMs: () => number,
  log: Pick<Log, "error">,
): PayloadRateLimit {
  /** Waiting transfers by source. The first source is served next, and moves to the end if it has further transfers. */
  const sources = new Map<string, WaitingTransfer[]>();
  let freeAt = 0;
  let isServing = false;

  function next(): WaitingTransfer | undefined {
    const [first] = sources;
    if (first === undefined) return undefined;
    const [source, waiting] = first;
    sources.delete(source);
    const transfer = waiting.shift();
    if (waiting.length > 0) sources.set(source, waiting);
    return transfer;
  }

  async function serve(): Promise<void> {
    isServing = true;
    for (let transfer = next(); transfer !== undefined; transfer = next()) await take(transfer);
    isServing = false;
  }

  async function take({ bytes, signal, done }: WaitingTransfer): Promise<void> {
    const now = monotonicMs();
    const startAt = Math.max(now, freeAt);
    try {
      await sleep(startAt - now, undefined, signal && { signal });
      freeAt = startAt + (bytes / bytesPerSecond) * 1_000;
      done.resolve();
    } catch (error) {
      done.reject(error);
    }
  }

  return {
    acquire(source, bytes, signal) {
      const transfer: WaitingTransfer = { bytes, signal, done: Promise.withResolvers<void>() };
      const waiting = sources.get(source);
      if (waiting === undefined) sources.set(source, [transfer]);
      else waiting.push(transfer);
      if (!isServing) inBackground(log, "payload rate limit", serve());
      return transfer.done.promise;
    },
  };
}
