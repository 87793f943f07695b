import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { createMirror } from "../store/mirror.ts";
import { root } from "../store/resource.ts";
import type { Store } from "../store/store.ts";
import { createDrift } from "./drift.ts";

/**
 * Automatic actions that can wait for an operator's consent. Deletion is all deletion by time: TTLs, sweeps, expiry of
 * backups.
 */
export type HeldBack = "deletion" | "maintenance" | "failover";

/** A reason to suspend some automatic actions. */
export interface Hold {
  /** "clock", "restored", or all that it stands against. */
  readonly kind: string;
  /** All that it stands against; everything when absent. */
  readonly only?: HeldBack;
  /** For the operator who decides. */
  readonly reason: string;
  readonly since: number;
  /** When it ends by itself; null when only an operator ends it. */
  readonly until: number | null;
}

export interface Holds {
  /**
   * The holds in force, or only those against one action. Ask right before each deletion: the call compares the clocks,
   * and until the holds in the store are known it answers a hold of its own.
   */
  list(against?: HeldBack): Hold[];
  set(hold: Hold, signal?: AbortSignal): Promise<void>;
  /** For `UnitOfWork.onlyWhile`: the commit throws Conflict when a hold of this kind is in the store. */
  unheld(kind: string): { readonly key: string; readonly modRevision: bigint };
  /** Nothing happens when there is none of this kind. */
  release(kind: string, signal?: AbortSignal): Promise<void>;
  close(): void;
}

export const holdPrefix = `${root}/hold/`;

const clockHoldMs = 3_600_000;
const checkMs = 5_000;
/** How often controllers note that they saw the wall clock, and so far behind the last note one may begin. */
const noteMs = 600_000;
const unseenMs = 3_600_000;
const backMs = 60_000;
/** The note: a hold of this kind that is always over. */
const seenKind = "seen";

export function createHolds({ store, clock, log }: { store: Store; clock: Clock; log: Log }): Holds {
  const drift = createDrift(clock);
  const stored = createMirror<Hold>(store, holdPrefix, ({ value }) => JSON.parse(value), forgetTold);
  /** Written by this process; null is released. They count until the mirror has their revision. */
  const written = new Map<string, { readonly hold: Hold | null; readonly revision: bigint }>();
  /** Seen by this process and not yet in the store. */
  let unstored: Hold | undefined;
  let hasLookedBack = false;
  let notedAtMs = Number.NEGATIVE_INFINITY;

  /**
   * A host that boots with a wrong clock has seen no jump. A span without any controller may be such a jump, or the
   * installation was off for long; either way deletion by time can wait for an hour, in which clocks are put right.
   */
  function lookBack(): void {
    hasLookedBack = true;
    const seen = [...stored.values()].find(({ kind }) => kind === seenKind);
    const passedMs = clock.now() - (seen?.since ?? clock.now());
    if (passedMs > unseenMs || passedMs < -backMs)
      holdFor(`The wall clock is ${Math.round(passedMs / 1_000)} s past the last time that a controller saw.`);
  }

  function holdFor(reason: string): void {
    const since = clock.now();
    unstored = { kind: "clock", reason, since, until: since + clockHoldMs };
    log.warn("the wall clock may be wrong", { reason });
  }

  function note(): void {
    if (clock.monotonicMs() - notedAtMs < noteMs) return;
    notedAtMs = clock.monotonicMs();
    write(seenKind, { kind: seenKind, reason: "", since: clock.now(), until: 0 }).catch((error: unknown) => {
      notedAtMs = Number.NEGATIVE_INFINITY;
      log.debug("time not noted", { error: String(error) });
    });
  }

  function forgetTold(): void {
    for (const [kind, { revision }] of written) if (revision <= stored.revision) written.delete(kind);
  }

  async function write(kind: string, hold: Hold | null, signal?: AbortSignal): Promise<void> {
    const key = holdPrefix + kind;
    const puts = hold === null ? [] : [{ key, value: JSON.stringify(hold) }];
    const done = await store.commit({ conditions: [], puts, deletes: hold === null ? [key] : [] }, signal);
    if (done.committed) written.set(kind, { hold, revision: done.revision });
    forgetTold();
  }

  function compareClocks(): void {
    const driftMs = drift.check();
    if (stored.revision !== 0n) {
      if (!hasLookedBack) lookBack();
      note();
    }
    if (driftMs !== undefined) holdFor(`The wall clock jumped by ${Math.round(driftMs / 1_000)} s.`);
    const hold = unstored;
    if (hold === undefined) return;
    write(hold.kind, hold).then(
      () => {
        if (unstored === hold) unstored = undefined;
      },
      (error) => log.debug("hold not stored", { kind: hold.kind, error: String(error) }),
    );
  }
  const checking = setInterval(compareClocks, checkMs);
  checking.unref();

  return {
    list(against) {
      compareClocks();
      const now = clock.now();
      const byKind = new Map<string, Hold | null>();
      for (const hold of stored.values()) byKind.set(hold.kind, hold);
      for (const [kind, { hold }] of written) byKind.set(kind, hold);
      if (unstored !== undefined) byKind.set(unstored.kind, unstored);
      if (stored.revision === 0n) {
        byKind.set("unknown", { kind: "unknown", reason: "The store has not been read yet.", since: now, until: null });
      }
      const all = [...byKind.values()].filter((hold) => hold !== null);
      const concerns = ({ only }: Hold) => against === undefined || only === undefined || only === against;
      return all.filter((hold) => concerns(hold) && (hold.until === null || hold.until > now));
    },
    set: (hold, signal) => write(hold.kind, hold, signal),
    unheld: (kind) => ({ key: holdPrefix + kind, modRevision: 0n }),
    async release(kind, signal) {
      if (unstored?.kind === kind) unstored = undefined;
      await write(kind, null, signal);
    },
    close() {
      clearInterval(checking);
      stored.close();
    },
  };
}
