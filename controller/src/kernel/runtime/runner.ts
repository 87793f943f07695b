import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { backOffMs } from "@holdfast/common/back-off.ts";
import { Conflict } from "../store/unit-of-work.ts";
import type { Watch } from "../store/store.ts";
import { hash, type Ownership } from "./ownership.ts";
import { createFailingKeys, type FailingKey, type FailingKeys } from "./failing-keys.ts";
import { createWorkQueue, type NextRun, type WorkQueue } from "./work-queue.ts";
import type { Reconciler } from "./reconciler.ts";

/** A reconciler with the source of its keys. */
export interface ControlLoop {
  readonly reconciler: Reconciler;
  /** Every existing key. Called at each resync, so it must be cheap. */
  keys(): Iterable<string>;
  /** Calls back with keys that may have changed. A hint: missed ones are found by the resync. */
  subscribe?(onChange: (key: string) => void): Watch;
  /**
   * Cheap summary of a reconcile's inputs in memory, such as revisions. While it equals the summary at the time the key
   * settled, resyncs skip the key; without it every key waits for the full resync.
   */
  inputs?(key: string): string | number | bigint;
  /** Keys worked on at once; default 8. */
  readonly concurrency?: number;
  /** Time after which a reconcile is aborted; default 60 s. */
  readonly deadlineMs?: number;
}

export interface Runner {
  start(): void;
  /** Number of keys of each reconciler that are due or worked on. */
  sizes(): Iterable<readonly [reconciler: string, keys: number]>;
  /** Number of keys of each reconciler whose last run failed, or goes on after its abort. */
  failing(): Iterable<readonly [reconciler: string, keys: number]>;
  /** The state of each reconciler, in memory: it begins anew with the process. */
  status(): ReconcilerStatus[];
  /** Aborts running work and resolves when it has ended. */
  stop(): Promise<void>;
}

interface Deps {
  readonly loops: readonly ControlLoop[];
  readonly ownership: Ownership;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
  /** Interval in which the inputs of every key are compared; default 30 s. */
  readonly resyncMs?: number;
  /** Interval in which every key is reconciled even if its inputs are unchanged; default 10 minutes. */
  readonly fullResyncMs?: number;
}

/** The state of one reconciler on this controller. Times are in milliseconds since 1970. */
export interface ReconcilerStatus {
  readonly reconciler: string;
  /** Number of keys that are due. */
  readonly queued: number;
  /** Number of keys that are worked on. */
  readonly running: number;
  /** Number of keys whose last run failed, or goes on after its abort. */
  readonly failing: number;
  /** At most `describedKeysMax` of the failing keys; `nextTryAt` is undefined while a key is due or worked on. */
  readonly failingKeys: readonly (FailingKey & { readonly nextTryAt: number | undefined })[];
  /** End of the last run; undefined before the first one. */
  readonly lastRunAt: number | undefined;
  /** The last failure of any key, also of one that has recovered. */
  readonly lastFailure: { readonly error: string; readonly at: number } | undefined;
}

interface KeyState {
  settled: { inputs: string | number | bigint | undefined; at: number } | undefined;
  /** Number of conflicts in a row. */
  conflicts: number;
}

/** Conflicts in a row that are retried soon: more of them are no race, and back off as failures. */
const conflictsMax = 50;
/** Time in which an aborted reconcile ends; the key of one that goes on counts as failing. */
const graceMs = 30_000;
/** A resync covers one slice of the keys at a time, so that its load is spread. */
const slices = 10;

/**
 * Runs the control loops. Each loop has a work queue; its keys come from hints (`subscribe`), from resyncs in slices
 * and from gained shards, and only keys of owned shards are worked on. Failures back off here; no reconciler retries by
 * itself.
 */
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
    failing: () => tracks.map(({ name, failing }) => [name, failing.count] as const),
    status: () => tracks.map((track) => track.status()),
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
  readonly queue: WorkQueue;
  readonly failing: FailingKeys;
  status(): ReconcilerStatus;
  start(): Watch[];
  resync(slice: number): void;
}

function createTrack(loop: ControlLoop, deps: Deps, stopping: AbortSignal): Track {
  const { reconciler, inputs, concurrency = 8, deadlineMs = 60_000 } = loop;
  const { ownership, clock, random, fullResyncMs = 600_000 } = deps;
  const log = deps.log.child({ reconciler: reconciler.name });
  const states = new Map<string, KeyState>();
  const failing = createFailingKeys(clock.now);
  let lastRunAt: number | undefined;

  async function work(key: string): Promise<NextRun> {
    const lease = ownership.begin(key);
    if (lease === undefined) {
      states.delete(key);
      failing.end(key);
      return "done";
    }
    const state = states.get(key) ?? { settled: undefined, conflicts: 0 };
    states.set(key, state);
    state.settled = undefined;
    const deadline = AbortSignal.timeout(deadlineMs);
    const overdue = setTimeout(
      () => failed(key, new Error("the attempt goes on after its abort")),
      deadlineMs + graceMs,
    );
    overdue.unref();
    try {
      const before = inputs?.(key);
      const outcome = await reconciler.reconcile(key, AbortSignal.any([lease.signal, stopping, deadline]));
      const failures = failing.failuresOf(key);
      if (failures > 0) log.info("reconcile recovered", { key, failures });
      failing.end(key);
      state.conflicts = 0;
      if (!outcome.done) return { afterMs: outcome.afterMs };
      state.settled = { inputs: before, at: clock.monotonicMs() };
      return "done";
    } catch (error) {
      if (stopping.aborted || lease.signal.aborted) {
        failing.end(key);
        return "done";
      }
      // Another writer was first; its write may not have reached the collections yet.
      if (error instanceof Conflict && failing.failuresOf(key) === 0 && state.conflicts < conflictsMax) {
        state.conflicts += 1;
        return { afterMs: 5 + 20 * random() };
      }
      return failed(key, error);
    } finally {
      clearTimeout(overdue);
      lastRunAt = clock.now();
      lease.end();
    }
  }

  function failed(key: string, error: unknown): NextRun {
    const { failures, isNewError } = failing.failed(key, error);
    if (isNewError) log.warn("reconcile failed", { key, error });
    return { afterMs: backOffMs(failures, random), backingOff: true };
  }

  const queue = createWorkQueue(concurrency, clock.monotonicMs, work, log);

  /** True if the key's inputs are those it settled with, and the full resync is not due. */
  function isUnchangedSinceSettled(key: string, now: number): boolean {
    const settled = states.get(key)?.settled;
    if (settled === undefined) return false;
    return settled.inputs === inputs?.(key) && now - settled.at < fullResyncMs;
  }

  function nextTryAt(key: string): number | undefined {
    const dueAt = queue.dueAt(key);
    return dueAt === undefined ? undefined : Math.round(clock.now() + dueAt - clock.monotonicMs());
  }

  /** Runs a step over all keys. Its error does not reach the other loops, whose keys are listed in the same turn. */
  function overKeys(step: () => void): void {
    try {
      step();
    } catch (error) {
      log.error("keys not listed", { error });
    }
  }

  function resync(slice: number): void {
    const now = clock.monotonicMs();
    const present = new Set<string>();
    for (const key of loop.keys()) {
      present.add(key);
      if (hash(key) % slices !== slice || !ownership.owns(key)) continue;
      // A key that waits for its `again` is not started earlier by a resync.
      if (states.get(key)?.settled === undefined ? !queue.has(key) : !isUnchangedSinceSettled(key, now)) queue.add(key);
    }
    for (const key of states.keys()) {
      if (present.has(key) || queue.has(key)) continue;
      states.delete(key);
      failing.end(key);
    }
  }

  return {
    name: reconciler.name,
    queue,
    failing,
    status: () => ({
      reconciler: reconciler.name,
      queued: queue.size - queue.running,
      running: queue.running,
      failing: failing.count,
      failingKeys: failing.described().map((each) => ({ ...each, nextTryAt: nextTryAt(each.key) })),
      lastRunAt,
      lastFailure: failing.last,
    }),
    start() {
      const addAll = () =>
        overKeys(() => {
          for (const key of loop.keys()) if (ownership.owns(key)) queue.add(key);
        });
      addAll();
      const hint = (key: string) => ownership.owns(key) && queue.add(key);
      const subscribed = loop.subscribe?.(hint);
      return [ownership.subscribe(addAll), ...(subscribed === undefined ? [] : [subscribed])];
    },
    resync: (slice) => overKeys(() => resync(slice)),
  };
}
