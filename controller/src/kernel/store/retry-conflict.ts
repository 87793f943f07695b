import { setTimeout as sleep } from "node:timers/promises";
import { backOffMs } from "@holdfast/common/back-off.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { Conflict } from "./unit-of-work.ts";

const attempts = 12;

/**
 * Runs a read-modify-write until it commits without a Conflict. Collections lag slightly behind the store, so each
 * attempt waits longer, for a random time: then each of many writers of one object succeeds. Throws STORE_UNAVAILABLE
 * after 12 attempts.
 */
export async function retryConflict<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      if (attempt === attempts)
        throw new HoldfastError("STORE_UNAVAILABLE", "Other requests change the object too often. Try again.", {
          cause: error,
        });
    }
    await sleep(backOffMs(attempt, Math.random, { initialMs: 8, maxMs: 500 }), undefined, { signal });
  }
}
