import { setTimeout as delay } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { EndedAttempt } from "./attempt-record.ts";
import type { Deliveries } from "./deliveries.ts";
import { backOffMs } from "@holdfast/common/back-off.ts";

/** Writes ended attempts, those that end together in one statement. */
export interface AttemptRecorder {
  /** Resolves when it is in the history, to since when the endpoint fails (null when it does not). Rejects on stop. */
  record(attempt: EndedAttempt): Promise<number | null>;
}

interface Waiting {
  readonly attempt: EndedAttempt;
  readonly done: PromiseWithResolvers<number | null>;
}

const batchMax = 500;

/** While the history is away it tries on; the limit on attempts in flight bounds what waits here. */
export function createAttemptRecorder(deps: {
  readonly deliveries: Pick<Deliveries, "record">;
  readonly random: () => number;
  readonly log: Log;
  readonly signal: AbortSignal;
}): AttemptRecorder {
  const { deliveries, random, log, signal } = deps;
  let waiting: Waiting[] = [];
  let isWriting = false;

  async function write(): Promise<void> {
    if (isWriting) return;
    isWriting = true;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, batchMax);
      waiting = waiting.slice(batch.length);
      try {
        const failing = await persist(batch.map(({ attempt }) => attempt));
        for (const { attempt, done } of batch) done.resolve(failing.get(attempt.webhookId) ?? null);
      } catch (error) {
        for (const { done } of batch) done.reject(error);
      }
    }
    // In the same turn as the last look at what waits: what comes later begins anew.
    isWriting = false;
  }

  async function persist(attempts: readonly EndedAttempt[]): Promise<ReadonlyMap<string, number>> {
    for (let failures = 0; ; ) {
      signal.throwIfAborted();
      try {
        return await deliveries.record(attempts);
      } catch (error) {
        failures += 1;
        if (failures === 1) log.warn("attempts wait for the history", { error: String(error) });
        await delay(backOffMs(failures, random, { maxMs: 5_000 }), undefined, { signal });
      }
    }
  }

  return {
    record(attempt) {
      const done = Promise.withResolvers<number | null>();
      waiting.push({ attempt, done });
      inBackground(log, "attempts of deliveries", write());
      return done.promise;
    },
  };
}
