import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createMirror } from "../store/mirror.ts";
import { root } from "../store/resource.ts";
import type { Store } from "../store/store.ts";

/**
 * Automatic actions that an operator can pause. "deletion" stands for every deletion by time: TTLs, sweeps and expiry
 * of backups.
 */
export type AutomaticAction = "deletion" | "maintenance" | "failover";

/** A pause of some automatic actions (a "hold" in the admin API, the commands and the store). */
export interface AutomationPause {
  /** "clock", "restored", or the name of the paused action. */
  readonly kind: string;
  /** The paused action; absent: all actions. */
  readonly only?: AutomaticAction;
  /** Explanation for the operator. */
  readonly reason: string;
  readonly since: number;
  /** Time at which the pause expires, in milliseconds since 1970; null: only an operator ends it. */
  readonly until: number | null;
}

/**
 * Pauses of automatic actions. An operator sets one; a restore of the control plane sets one; and this module sets
 * "clock" for an hour when the wall clock jumps, or when no controller ran for over an hour, so that a wrong clock
 * deletes nothing. Controllers record the time every ten minutes to detect such a gap.
 */
export interface AutomationPauses {
  /**
   * The pauses in force, or only the pauses of one action. Call it right before each deletion: the call compares the
   * clocks, and returns the pause "unknown" until the stored pauses are loaded.
   */
  list(action?: AutomaticAction): AutomationPause[];
  set(pause: AutomationPause, signal?: AbortSignal): Promise<void>;
  /** Condition for `UnitOfWork.onlyWhile`: the commit throws Conflict if a pause of this kind is stored. */
  unlessPaused(kind: string): { readonly key: string; readonly modRevision: bigint };
  /** Ends the pause of this kind; no-op without one. */
  release(kind: string, signal?: AbortSignal): Promise<void>;
  close(): void;
}

export const pausePrefix = `${root}/hold/`;

const clockPauseMs = 3_600_000;
const checkIntervalMs = 5_000;
/** Interval at which controllers record the wall clock. */
const recordIntervalMs = 600_000;
/** Maximum time since the last record for which no pause is set. */
const maxGapMs = 3_600_000;
const backwardsToleranceMs = 60_000;
/** Kind of the record: stored as a pause that has already ended. */
const lastSeenKind = "seen";

export function createAutomationPauses({
  store,
  clock,
  log,
}: {
  store: Store;
  clock: Clock;
  log: Log;
}): AutomationPauses {
  const drift = createDrift(clock);
  const stored = createMirror<AutomationPause>(store, pausePrefix, ({ value }) => JSON.parse(value), discardStored);
  /** Pauses that this process wrote; null: released. They count until the mirror has their revision. */
  const written = new Map<string, { readonly pause: AutomationPause | null; readonly revision: bigint }>();
  /** The clock pause that this process set and has not stored yet. */
  let pending: AutomationPause | undefined;
  let hasCheckedGap = false;
  let recordedAtMs = Number.NEGATIVE_INFINITY;

  /**
   * Compares the clock with the last recorded time. A host that boots with a wrong clock sees no jump. A gap without a
   * running controller may be such a jump, or the installation was off; in either case deletions are paused for an
   * hour.
   */
  function checkGap(): void {
    hasCheckedGap = true;
    const lastRecord = [...stored.values()].find(({ kind }) => kind === lastSeenKind);
    const elapsedMs = clock.now() - (lastRecord?.since ?? clock.now());
    if (elapsedMs > maxGapMs || elapsedMs < -backwardsToleranceMs)
      pauseDeletion(`The wall clock is ${Math.round(elapsedMs / 1_000)} s past the last time that a controller saw.`);
  }

  function pauseDeletion(reason: string): void {
    const since = clock.now();
    pending = { kind: "clock", reason, since, until: since + clockPauseMs };
    log.warn("the wall clock may be wrong", { reason });
  }

  function recordTime(): void {
    if (clock.monotonicMs() - recordedAtMs < recordIntervalMs) return;
    recordedAtMs = clock.monotonicMs();
    write(lastSeenKind, { kind: lastSeenKind, reason: "", since: clock.now(), until: 0 }).catch((error: unknown) => {
      recordedAtMs = Number.NEGATIVE_INFINITY;
      log.debug("time not recorded", { error: String(error) });
    });
  }

  function discardStored(): void {
    for (const [kind, { revision }] of written) if (revision <= stored.revision) written.delete(kind);
  }

  async function write(kind: string, pause: AutomationPause | null, signal?: AbortSignal): Promise<void> {
    const key = pausePrefix + kind;
    const puts = pause === null ? [] : [{ key, value: JSON.stringify(pause) }];
    const done = await store.commit({ conditions: [], puts, deletes: pause === null ? [key] : [] }, signal);
    if (done.committed) written.set(kind, { pause, revision: done.revision });
    discardStored();
  }

  function compareClocks(): void {
    const driftMs = drift.check();
    if (stored.revision !== 0n) {
      if (!hasCheckedGap) checkGap();
      recordTime();
    }
    if (driftMs !== undefined) pauseDeletion(`The wall clock jumped by ${Math.round(driftMs / 1_000)} s.`);
    const pause = pending;
    if (pause === undefined) return;
    write(pause.kind, pause).then(
      () => {
        if (pending === pause) pending = undefined;
      },
      (error) => log.debug("automation pause not stored", { kind: pause.kind, error: String(error) }),
    );
  }
  const checkTimer = setInterval(compareClocks, checkIntervalMs);
  checkTimer.unref();

  return {
    list(action) {
      compareClocks();
      const now = clock.now();
      const byKind = new Map<string, AutomationPause | null>();
      for (const pause of stored.values()) byKind.set(pause.kind, pause);
      for (const [kind, { pause }] of written) byKind.set(kind, pause);
      if (pending !== undefined) byKind.set(pending.kind, pending);
      if (stored.revision === 0n) {
        byKind.set("unknown", { kind: "unknown", reason: "The store has not been read yet.", since: now, until: null });
      }
      const all = [...byKind.values()].filter((pause) => pause !== null);
      const concerns = ({ only }: AutomationPause) => action === undefined || only === undefined || only === action;
      return all.filter((pause) => concerns(pause) && (pause.until === null || pause.until > now));
    },
    set: (pause, signal) => write(pause.kind, pause, signal),
    unlessPaused: (kind) => ({ key: pausePrefix + kind, modRevision: 0n }),
    async release(kind, signal) {
      if (pending?.kind === kind) pending = undefined;
      await write(kind, null, signal);
    },
    close() {
      clearInterval(checkTimer);
      stored.close();
    },
  };
}

/** Compares the wall clock with the monotonic clock. */
interface Drift {
  /**
   * The drift between the clocks since the last reference, in milliseconds, if it exceeds a minute; the time of this
   * call becomes the new reference. Otherwise undefined.
   */
  check(): number | undefined;
}

const allowedDriftMs = 60_000;
/** NTP slews a clock a little all the time, so the reference is renewed every hour. */
const referenceMaxAgeMs = 3_600_000;

export function createDrift(clock: Clock): Drift {
  let wall = clock.now();
  let monotonic = clock.monotonicMs();
  return {
    check() {
      const elapsedMs = clock.monotonicMs() - monotonic;
      const drift = clock.now() - wall - elapsedMs;
      const isDrifted = Math.abs(drift) > allowedDriftMs;
      if (isDrifted || elapsedMs > referenceMaxAgeMs) {
        wall = clock.now();
        monotonic = clock.monotonicMs();
      }
      return isDrifted ? drift : undefined;
    },
  };
}
