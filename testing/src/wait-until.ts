import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";

/** Error that a check throws for a state that cannot improve, so that the wait ends immediately. */
export class GiveUp extends Error {}

/**
 * Returns the first result of `check` that is neither undefined nor false. After the time limit it throws with the text
 * of `describe` and the last error of `check`, so that a failed test reports the state. An abort ends the wait with the
 * signal's reason as the cause.
 */
export async function waitUntil<T>(
  what: string,
  check: () => Promise<T | undefined | false> | T | undefined | false,
  options: {
    withinMs?: number;
    everyMs?: number;
    describe?: () => Promise<string> | string;
    signal?: AbortSignal;
  } = {},
): Promise<T> {
  const { withinMs = 120_000, everyMs = 50, describe, signal } = options;
  const deadline = Date.now() + withinMs;
  let last: unknown;
  for (;;) {
    try {
      const found = await check();
      if (found !== undefined && found !== false) return found;
      last = undefined;
    } catch (error) {
      if (error instanceof GiveUp) throw error;
      last = error;
    }
    if (Date.now() > deadline) {
      const error = last === undefined ? "" : `\nlast error: ${last instanceof Error ? last.message : inspect(last)}`;
      throw new Error(
        `not within ${withinMs} ms: ${what}${error}${describe === undefined ? "" : `\n${await describe()}`}`,
      );
    }
    // Time: the rate of the checks.
    await sleep(everyMs, undefined, { signal });
  }
}

/** `waitUntil` without a description, for a condition that is clear at its call. */
export async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  await waitUntil(condition.toString(), condition, { everyMs: 10 });
}
