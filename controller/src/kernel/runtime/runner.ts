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
  /** Calls back with keys that may have changed. These are hints: the resync finds keys whose hint was missed. */
  subscribe?(onChange: (key: string) => void): Watch;
  /**
   * Cheap summary of a reconcile's inputs in memory, such as revisions. While it equals the summary at the time the key
   * settled, resyncs skip the key. Without this function, a settled key is reconciled at the full resync.
   */
  inputs?(key: string): string | number | bigint;
  /** Number of keys that are worked on concurrently; default 8. */
  readonly concurrency?: number;
  /** Time after which a reconcile is aborted; default 60 s. */
  readonly deadlineMs?: number;
}

export interface Runner {
  start(): void;
  /** Number of keys of each reconciler that are due or worked on. */
  sizes(): Iterable<readonly [reconciler: string, keys: number]>;
  /** Number of keys of each reconciler whose last run failed, or still runs after its abort. */
  failing(): Iterable<readonly [reconciler: string, keys: number]>;
  /** The state of each reconciler since the start of this process. */
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
  /** Interval at which the inputs of every key are compared; default 30 s. */
  readonly resyncMs?: number;
  /** Interval at which every key is reconciled, even if its inputs are unchanged; default 10 minutes. */
  readonly fullResyncMs?: number;
}

/** The state of one reconciler on this controller. Times are in milliseconds since 1970. */
export interface ReconcilerStatus {
  readonly reconciler: string;
  /** Number of keys that are due. */
  readonly queued: number;
  /** Number of keys that are worked on. */
  readonly running: number;
  /** Number of keys whose last run failed, or still runs after its abort. */
  readonly failing: number;
  /** At most `describedKeysMax` of the failing keys; `nextTryAt` is undefined while a key is due or worked on. */
  readonly failingKeys: readonly (FailingKey & { readonly nextTryAt: number | undefined })[];
  /** Time at which the last run ended; undefined before the first one. */
  readonly lastRunAt: number | undefined;
  /** The last failure of any key, including keys that have recovered. */
  readonly lastFailure: { readonly error: string; readonly at: number } | undefined;
}

interface KeyState {
  settled: { inputs: string | number | bigint | undefined; at: number } | undefined;
  /** Number of conflicts in a row. */
  conflicts: number;
}

/** Maximum number of conflicts in a row that are retried within milliseconds; further ones count as failures. */
const conflictsMax = 50;
/** Time that an aborted reconcile has to end; after that its key counts as failing. */
const graceMs = 30_000;
/** A resync covers one slice of the keys at a time, so that its load is spread. */
const slices = 10;

/**
 * Runs the control loops. Each loop has a work queue. Keys are added by hints (`subscribe`), by resyncs in slices and
 * when shards are gained; only keys of owned shards are worked on. The runner retries failures with a back-off; no
 * reconciler retries by itself.
 */
export function createRunner(deps: Deps): Runner {
  const stopping = new AbortController();
  const runningLoops = deps.loops.map((loop) => createRunningLoop(loop, deps, stopping.signal));
  const watches: Watch[] = [];
  let slice = 0;
  let resyncTimer: NodeJS.Timeout | undefined;
  return {
    start() {
      for (const runningLoop of runningLoops) watches.push(...runningLoop.start());
      const tick = () => {
        slice = (slice + 1) % slices;
        for (const runningLoop of runningLoops) runningLoop.resync(slice);
      };
      resyncTimer = setInterval(tick, (deps.resyncMs ?? 30_000) / slices);
    },
    sizes: () => runningLoops.map(({ name, queue }) => [name, queue.size] as const),
    failing: () => runningLoops.map(({ name, failing }) => [name, failing.count] as const),
    status: () => runningLoops.map((runningLoop) => runningLoop.status()),
    async stop() {
      clearInterval(resyncTimer);
      for (const watch of watches) watch.close();
      stopping.abort(new Error("the controller stops"));
      await Promise.all(runningLoops.map(({ queue }) => queue.stop()));
    },
  };
}

interface RunningLoop {
  readonly name: string;
  readonly queue: WorkQueue;
  readonly failing: FailingKeys;
  status(): ReconcilerStatus;
  start(): Watch[];
  resync(slice: number): void;
}

function createRunningLoop(loop: ControlLoop, deps: Deps, stopping: AbortSignal): RunningLoop {
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
    const overdueTimer = setTimeout(
      () => failed(key, new Error("the attempt still runs after its abort")),
      deadlineMs + graceMs,
    );
    overdueTimer.unref();
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
      // Another writer committed first, and its write may not be in the collections yet.
      if (error instanceof Conflict && failing.failuresOf(key) === 0 && state.conflicts < conflictsMax) {
        state.conflicts += 1;
        return { afterMs: 5 + 20 * random() };
      }
      return failed(key, error);
    } finally {
      clearTimeout(overdueTimer);
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

  /** True if the key's inputs are the same as when it settled, and its full resync is not due. */
  function isUnchangedSinceSettled(key: string, now: number): boolean {
    const settled = states.get(key)?.settled;
    if (settled === undefined) return false;
    return settled.inputs === inputs?.(key) && now - settled.at < fullResyncMs;
  }

  function nextTryAt(key: string): number | undefined {
    const dueAt = queue.dueAt(key);
    return dueAt === undefined ? undefined : Math.round(clock.now() + dueAt - clock.monotonicMs());
  }

  /** Runs a step over all keys. An error is logged, so that the keys of the other loops are still listed. */
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
