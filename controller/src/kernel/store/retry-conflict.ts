import { setTimeout as sleep } from "node:timers/promises";
import { backOffMs } from "@holdfast/common/back-off.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { Conflict } from "./unit-of-work.ts";

const attempts = 12;

/**
 * Runs a read-modify-write until it commits without a Conflict. Collections lag slightly behind the store, so each
 * attempt waits longer, at random: of many writers of one object, each then gets its turn. After 12 attempts it throws
 * STORE_UNAVAILABLE.
 */
export async function retryConflict<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      if (attempt === attempts)
        throw new HoldfastError("STORE_UNAVAILABLE", "The object changes too fast; try again.", { cause: error });
    }
    await sleep(backOffMs(attempt, Math.random, { initialMs: 8, maxMs: 500 }), undefined, { signal });
  }
}
