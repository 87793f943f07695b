import { setTimeout as sleep } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";

/** Lets bytes go on at so many a second, whoever brings them: sources take turns, each in the order that it brought them. */
export interface Pace {
  /** Resolves when it is their turn, never at once. Rejects, and costs the others nothing, when the signal comes first. */
  pass(source: string, bytes: number, signal?: AbortSignal): Promise<void>;
}

interface Turn {
  readonly bytes: number;
  readonly signal: AbortSignal | undefined;
  readonly done: PromiseWithResolvers<void>;
}

/** Lost time is not made up for: on a busy machine what is paced slows down with everything else. */
export function createPace(bytesPerSecond: number, monotonicMs: () => number, log: Pick<Log, "error">): Pace {
  /** Whose turn it is stands first. */
  const sources = new Map<string, Turn[]>();
  let freeAt = 0;
  let isServing = false;

  function next(): Turn | undefined {
    const [first] = sources;
    if (first === undefined) return undefined;
    const [source, turns] = first;
    sources.delete(source);
    const turn = turns.shift();
    if (turns.length > 0) sources.set(source, turns);
    return turn;
  }

  async function serve(): Promise<void> {
    isServing = true;
    for (let turn = next(); turn !== undefined; turn = next()) await take(turn);
    isServing = false;
  }

  async function take({ bytes, signal, done }: Turn): Promise<void> {
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
    pass(source, bytes, signal) {
      const turn: Turn = { bytes, signal, done: Promise.withResolvers<void>() };
      const turns = sources.get(source);
      if (turns === undefined) sources.set(source, [turn]);
      else turns.push(turn);
      if (!isServing) inBackground(log, "pace of payloads", serve());
      return turn.done.promise;
    },
  };
}
