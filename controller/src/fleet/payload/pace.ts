import { setTimeout as sleep } from "node:timers/promises";

/** Lets bytes go on at so many a second, whoever brings them, in the order they come. */
export interface Pace {
  /** Resolves when it is their turn, never at once. Rejects, and costs the others nothing, when the signal comes first. */
  pass(bytes: number, signal?: AbortSignal): Promise<void>;
}

/** Lost time is not made up for: on a busy machine what is paced slows down with everything else. */
export function createPace(bytesPerSecond: number, monotonicMs: () => number): Pace {
  let before: Promise<unknown> = Promise.resolve();
  let freeAt = 0;

  async function take(bytes: number, signal: AbortSignal | undefined): Promise<void> {
    const now = monotonicMs();
    const startAt = Math.max(now, freeAt);
    await sleep(startAt - now, undefined, signal && { signal });
    freeAt = startAt + (bytes / bytesPerSecond) * 1_000;
  }

  return {
    pass(bytes, signal) {
      const turn = before.then(() => take(bytes, signal));
      before = turn.catch(() => undefined);
      return turn;
    },
  };
}
