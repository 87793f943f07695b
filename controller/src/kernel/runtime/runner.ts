import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { Conflict } from "../store/unit-of-work.ts";
import type { Watch } from "../store/store.ts";
import { backOffMs } from "@holdfast/common/back-off.ts";
import { hash, type Ownership } from "./ownership.ts";
import { createQueue, type Next, type Queue } from "./queue.ts";
import type { Reconciler } from "./reconciler.ts";

/** A reconciler with where its keys come from. */
export interface ControlLoop {
  readonly reconciler: Reconciler;
  /** Every key that there is; asked again and again, so it must be cheap. */
  keys(): Iterable<string>;
  /** Calls back with keys that may have changed: a hint, never the truth. */
  subscribe?(onChange: (key: string) => void): Watch;
  /**
   * Cheap summary of a reconcile's inputs in memory, such as revisions. While it is as it was when the key settled, the
   * resync skips the key; without it every key waits for the full resync.
   */
  inputs?(key: string): string | number | bigint;
  /** Keys worked on at once; 8 when not given. */
  readonly concurrency?: number;
  /** A reconcile is aborted after this; 60 s when not given. */
  readonly deadlineMs?: number;
}

export interface Runner {
  start(): void;
  /** How many keys of each reconciler wait or are worked on. */
  sizes(): Iterable<readonly [reconciler: string, keys: number]>;
  /** Aborts running work and resolves when it has ended. */
  stop(): Promise<void>;
}

interface Deps {
  readonly loops: readonly ControlLoop[];
  readonly ownership: Ownership;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
  /** How often each key's inputs are compared; 30 s when not given. */
  readonly resyncMs?: number;
  /** How often a key is reconciled although nothing seems to have changed; 10 minutes when not given. */
  readonly fullResyncMs?: number;
}

interface KeyState {
  failures: number;
  lastError: string;
  settled: { inputs: string | number | bigint | undefined; at: number } | undefined;
}

/** A resync looks at one slice of the keys at a time, so that there is no moment when all are looked at. */
const slices = 10;

/** Works on the keys that this controller owns, and retries; no reconciler retries by itself. */
export function createRunner(deps: Deps): Runner {
  const stopping = new AbortController();
  const tracks = deps.loops.map((one) => createTrack(one, deps, stopping.signal));
  const watches: Watch[] = [];
  let slice = 0;
  let ticking: NodeJS.Timeout | undefined;
  return {
    start() {
      for (const track of tracks) watches.push(...track.start());
      const tick = () => {
        slice = (slice + 1) % slices;
        for (const track of tracks) track.resync(slice);
      };
      ticking = setInterval(tick, (deps.resyncMs ?? 30_000) / slices);
    },
    sizes: () => tracks.map(({ name, queue }) => [name, queue.size] as const),
    async stop() {
      clearInterval(ticking);
      for (const watch of watches) watch.close();
      stopping.abort(new Error("the controller stops"));
      await Promise.all(tracks.map(({ queue }) => queue.stop()));
    },
  };
}

interface Track {
  readonly name: string;
  readonly queue: Queue;
  start(): Watch[];
  resync(slice: number): void;
}

function createTrack(loop: ControlLoop, deps: Deps, stopping: AbortSignal): Track {
  const { reconciler, inputs, concurrency = 8, deadlineMs = 60_000 } = loop;
  const { ownership, clock, random, fullResyncMs = 600_000 } = deps;
  const log = deps.log.child({ reconciler: reconciler.name });
  const states = new Map<string, KeyState>();

  async function work(key: string): Promise<Next> {
    const right = ownership.begin(key);
    if (right === undefined) {
      states.delete(key);
      return "done";
    }
    const state = states.get(key) ?? { failures: 0, lastError: "", settled: undefined };
    states.set(key, state);
    state.settled = undefined;
    const deadline = AbortSignal.timeout(deadlineMs);
    try {
      const before = inputs?.(key);
      const outcome = await reconciler.reconcile(key, AbortSignal.any([right.signal, stopping, deadline]));
      if (state.failures > 0) log.info("reconcile works again", { key, failures: state.failures });
      state.failures = 0;
      state.lastError = "";
      if (!outcome.done) return { afterMs: outcome.afterMs };
      state.settled = { inputs: before, at: clock.monotonicMs() };
      return "done";
    } catch (error) {
      if (stopping.aborted || right.signal.aborted) return "done";
      // Another writer was first; its write may not have reached our memory yet.
      if (error instanceof Conflict && state.failures === 0) return { afterMs: 5 + 20 * random() };
      return failed(key, state, error);
    } finally {
      right.end();
    }
  }

  function failed(key: string, state: KeyState, error: unknown): Next {
    state.failures += 1;
    const message = String(error);
    if (message !== state.lastError) log.warn("reconcile failed", { key, error });
    state.lastError = message;
    return { afterMs: backOffMs(state.failures, random), backingOff: true };
  }

  const queue = createQueue(concurrency, clock.monotonicMs, work, log);

  /** Is there nothing to see, as far as memory can tell? */
  function asSettled(key: string, now: number): boolean {
    const settled = states.get(key)?.settled;
    if (settled === undefined) return false;
    return settled.inputs === inputs?.(key) && now - settled.at < fullResyncMs;
  }

  return {
    name: reconciler.name,
    queue,
    start() {
      const addAll = () => {
        for (const key of loop.keys()) if (ownership.owns(key)) queue.add(key);
      };
      addAll();
      const hint = (key: string) => ownership.owns(key) && queue.add(key);
      const subscribed = loop.subscribe?.(hint);
      return [ownership.subscribe(addAll), ...(subscribed === undefined ? [] : [subscribed])];
    },
    resync(slice) {
      const now = clock.monotonicMs();
      const present = new Set<string>();
      for (const key of loop.keys()) {
        present.add(key);
        if (hash(key) % slices !== slice || !ownership.owns(key)) continue;
        // A key that waits for its `again` is looked at no sooner for that.
        if (states.get(key)?.settled === undefined ? !queue.has(key) : !asSettled(key, now)) queue.add(key);
      }
      for (const key of states.keys()) if (!present.has(key) && !queue.has(key)) states.delete(key);
    },
  };
}
