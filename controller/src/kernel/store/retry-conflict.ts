import { HoldfastError } from "@holdfast/common/errors.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { Conflict } from "./unit-of-work.ts";

const attempts = 12;

/**
 * Reads and writes again until no other writer was first. The memory follows the store by a moment, so each attempt
 * waits a little longer; after the last one the caller may try again.
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
    await sleep(attempt * 4, undefined, { signal });
  }
}
