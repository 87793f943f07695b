import { HoldfastError } from "@holdfast/common/errors.ts";
import { createRevisionWaits } from "./revision-waits.ts";
import type { Store, StoreWatch } from "./store.ts";

/**
 * How old everything is that this process has read from the store by watches. A process that is cut off continues to
 * have its old objects, and after the cut it has them until its watches resume. So from the end of its session on, and
 * after a silence of a watch, watches may miss changes, even after their next report: etcd may have sent that before
 * the cut, or its member may not have caught up. A linearizable read then tells which revision each watch must reach;
 * one whose stream does not is listed again.
 */
export interface StoreView {
  /** The store, whose watches count. */
  readonly store: Store;
  /**
   * Resolves if no watch misses a change that is older than `maxAgeMs`, and without a session after a read of the
   * store; undefined if it would resolve immediately. Throws STORE_UNAVAILABLE if etcd does not respond, or if a watch
   * has not resumed in time.
   */
  requireCurrent(): Promise<void> | undefined;
  /** A session of this process has ended: all watches may miss changes. */
  endSession(): void;
}

export interface StoreViewDeps {
  readonly store: Store;
  /** Milliseconds, including those in which the host or this process is suspended. */
  readonly bootMs: () => number;
  /** Time without a report after which a watch may miss changes. */
  readonly maxAgeMs: number;
  /** True while other controllers respect what this process owns, which ends after `HOLDFAST_LEASE_S` without etcd. */
  readonly hasSession: () => boolean;
}

/** Time for watches to report the revision of the store; then they list everything again. */
const reportTimeoutMs = 1_000;
const listingTimeoutMs = 3_000;

interface ViewedWatch {
  watch: StoreWatch | undefined;
  /** Revision of the last report. */
  revision: bigint;
  /** Time of the last report, or of a read whose revision the watch has reached. */
  reportedAt: number;
  /** True from a silence until the watch has reached the revision of a later read. */
  mayMissChanges: boolean;
}

export function createStoreView({ store, bootMs, maxAgeMs, hasSession }: StoreViewDeps): StoreView {
  const watches = new Set<ViewedWatch>();
  const waits = createRevisionWaits();
  /** Time until which no watch is outdated if none reports: each call of the API compares it with the clock. */
  let currentUntil = Number.POSITIVE_INFINITY;
  let endedSessions = 0;
  let confirming: Promise<void> | undefined;

  function isOutdated(viewed: ViewedWatch, now: number): boolean {
    viewed.mayMissChanges ||= now - viewed.reportedAt > maxAgeMs;
    return viewed.mayMissChanges;
  }

  function outdated(): ViewedWatch[] {
    const now = bootMs();
    const all = [...watches];
    const found = all.filter((each) => isOutdated(each, now));
    const earliest = all.reduce((least, { reportedAt }) => Math.min(least, reportedAt), Number.POSITIVE_INFINITY);
    currentUntil = found.length === 0 ? earliest + maxAgeMs : Number.NEGATIVE_INFINITY;
    return found;
  }

  /** Waits until watches have the revision that the store has now: all without a session, else the outdated ones. */
  async function confirm(): Promise<void> {
    const startedAt = bootMs();
    const ended = endedSessions;
    const found = hasSession() ? outdated() : [...watches];
    const target = await store.revision();
    const open = () => found.filter((each) => watches.has(each));
    const progress = {
      revision: () => open().reduce((lowest, { revision }) => (revision < lowest ? revision : lowest), target),
      requestProgress() {
        for (const { watch } of open()) watch?.requestProgress();
      },
    };
    await waits.untilRevision(progress, target, reportTimeoutMs).catch(() => {
      for (const { revision, watch } of open()) if (revision < target) watch?.listAgain();
    });
    await waits.untilRevision(progress, target, listingTimeoutMs);
    // If a session has ended since the begin of this function, it may have ended after the read.
    if (ended !== endedSessions) return;
    for (const each of found) {
      each.mayMissChanges = false;
      each.reportedAt = Math.max(each.reportedAt, startedAt);
    }
  }

  async function catchUp(): Promise<void> {
    // A second round is for watches that a confirmation in progress does not include.
    for (let round = 0; round < 2; round += 1) {
      confirming ??= confirm().finally(() => {
        confirming = undefined;
      });
      await confirming;
      if (outdated().length === 0) return;
    }
    throw new HoldfastError("STORE_UNAVAILABLE", "This controller does not have the store's changes yet.");
  }

  return {
    store: {
      ...store,
      watch(prefix, handler) {
        const viewed: ViewedWatch = { watch: undefined, revision: 0n, reportedAt: bootMs(), mayMissChanges: false };
        watches.add(viewed);
        currentUntil = Math.min(currentUntil, viewed.reportedAt + maxAgeMs);
        const watch = store.watch(prefix, {
          ...handler,
          synced(revision) {
            handler.synced(revision);
            const now = bootMs();
            // A report after a silence does not end it.
            isOutdated(viewed, now);
            viewed.reportedAt = now;
            viewed.revision = revision;
            waits.advanced();
          },
        });
        viewed.watch = watch;
        return {
          close() {
            watches.delete(viewed);
            watch.close();
          },
          requestProgress: watch.requestProgress,
          listAgain: watch.listAgain,
        };
      },
    },
    endSession() {
      endedSessions += 1;
      currentUntil = Number.NEGATIVE_INFINITY;
      for (const each of watches) each.mayMissChanges = true;
    },
    requireCurrent() {
      if (hasSession() && (bootMs() <= currentUntil || outdated().length === 0)) return undefined;
      return catchUp();
    },
  };
}
