import type { Clock } from "@holdfast/common/clock.ts";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import { createTokenBucket } from "@holdfast/common/concurrency/token-buckets.ts";
import type { NewAudit, OutboxEntry } from "../store/outbox-entry.ts";

/** Audit entries of refused calls that wait for the history, in order of arrival and bounded for each caller. */
export interface RefusedEntries {
  readonly size: number;
  /** False if the entry is only counted: its caller exceeded the limit per minute, or has the most waiting entries. */
  add(entry: NewAudit): boolean;
  oldest(count: number): OutboxEntry[];
  /** Removes entries that are in the history. */
  remove(entries: readonly OutboxEntry[]): void;
  /** The oldest entries that have waited for `waitedMs` and were not passed to `markSaved`. */
  unsaved(waitedMs: number, count: number): OutboxEntry[];
  /** Marks entries as saved in etcd, so that they survive this process. */
  markSaved(entries: readonly OutboxEntry[]): void;
  /** Ids of saved entries that were evicted since the last call. */
  takeEvicted(): string[];
}

interface Waiting {
  readonly entry: OutboxEntry;
  readonly caller: string;
  readonly since: number;
  isSaved: boolean;
}

interface Count {
  /** The first entry that was only counted; it identifies the caller in the summary. */
  firstExcess: NewAudit | undefined;
  entries: number;
  excess: number;
}

/** Maximum number of entries of one caller per minute. */
const callerMax = 100;
/** Rate of all calls without a valid credential together: many sources must not fill the history over days. */
const anonymousRate = { burst: 500, perSecond: 0.5 };
const anonymous = "anonymous";
const windowMs = 60_000;
/** Maximum number of waiting entries while the history is unavailable. */
const waitingMax = 2_000;

/**
 * A flood of one caller evicts no entries of others: its excess entries are only counted, and the count is audited.
 * When `waitingMax` is reached, the newest entry of the caller with the most waiting entries is evicted.
 */
export function createRefusedEntries(clock: Clock, ids: () => string): RefusedEntries {
  /** Waiting entries by id, oldest first. */
  const waiting = new Map<string, Waiting>();
  /** Number of waiting entries of each caller. */
  const byCaller = createKeyedCounter();
  let evicted: string[] = [];
  let counts = new Map<string, Count>();
  let windowEndsAt = 0;
  const anonymousBucket = createTokenBucket(anonymousRate, clock.monotonicMs());

  function enqueue(entry: NewAudit): void {
    const complete: OutboxEntry = { ...entry, entry: "audit", id: ids(), occurredAt: clock.now() };
    const caller = callerOf(entry);
    waiting.set(complete.id, { entry: complete, caller, since: clock.monotonicMs(), isSaved: false });
    byCaller.add(caller);
  }

  function dequeue(id: string): void {
    const each = waiting.get(id);
    if (each === undefined) return;
    waiting.delete(id);
    byCaller.add(each.caller, -1);
  }

  function hasCapacity(caller: string): boolean {
    return waiting.size < waitingMax || evictFor(caller);
  }

  /** Starts a new minute, and audits the number of entries that were only counted in the last one. */
  function rollWindow(): void {
    const now = clock.monotonicMs();
    if (now < windowEndsAt) return;
    windowEndsAt = now + windowMs;
    const before = counts;
    counts = new Map();
    for (const [name, { firstExcess, excess }] of before) {
      if (firstExcess === undefined) continue;
      if (hasCapacity(callerOf(firstExcess)))
        enqueue({ ...firstExcess, action: `${excess} more refused calls`, objectId: "" });
      else counts.set(name, { firstExcess, entries: 0, excess });
    }
  }

  function countOf(name: string): Count {
    const count = counts.get(name) ?? { firstExcess: undefined, entries: 0, excess: 0 };
    if (counts.size < waitingMax) counts.set(name, count);
    return count;
  }

  /**
   * The exhausted count of the entry's caller, if any. Anonymous callers beyond `anonymousRate` share one count, since
   * a count for each source would be unbounded.
   */
  function fullCount(entry: NewAudit): Count | undefined {
    const callerCount = counts.get(callerOf(entry));
    if (callerCount !== undefined && callerCount.entries >= callerMax) return callerCount;
    if (entry.actor !== anonymous || anonymousBucket.take(1, clock.monotonicMs())) return undefined;
    return countOf(anonymous);
  }

  function countExcess(count: Count, entry: NewAudit): void {
    count.firstExcess ??= entry;
    count.excess += 1;
  }

  /** Evicts the newest entry of the caller with the most entries; false if that is this caller. */
  function evictFor(caller: string): boolean {
    const fullest = byCaller.highest();
    if (fullest === undefined || fullest.count <= byCaller.of(caller) + 1) return false;
    const last = waiting
      .values()
      .filter((each) => each.caller === fullest.key)
      .toArray()
      .at(-1);
    if (last === undefined || last.entry.entry !== "audit") return false;
    dequeue(last.entry.id);
    if (last.isSaved) evicted.push(last.entry.id);
    countExcess(countOf(callerOf(last.entry)), last.entry);
    return true;
  }

  return {
    get size() {
      return waiting.size;
    },
    add(entry) {
      rollWindow();
      const full = fullCount(entry);
      const callerCount = full ?? countOf(callerOf(entry));
      if (full !== undefined || !hasCapacity(callerOf(entry))) {
        countExcess(callerCount, entry);
        return false;
      }
      callerCount.entries += 1;
      enqueue(entry);
      return true;
    },
    oldest(count) {
      rollWindow();
      return entriesOf(waiting.values(), count);
    },
    remove(entries) {
      for (const { id } of entries) dequeue(id);
    },
    unsaved(waitedMs, count) {
      const before = clock.monotonicMs() - waitedMs;
      return entriesOf(
        waiting.values().filter(({ isSaved, since }) => !isSaved && since <= before),
        count,
      );
    },
    markSaved(entries) {
      for (const { id } of entries) {
        const each = waiting.get(id);
        if (each !== undefined) each.isSaved = true;
      }
    },
    takeEvicted() {
      const taken = evicted;
      evicted = [];
      return taken;
    },
  };
}

/** Identifies the caller by its credential, or by its source if it has none. */
function callerOf({ organizationId, actor, source }: NewAudit): string {
  return actor === anonymous ? `from ${source}` : `${organizationId} ${actor}`;
}

function entriesOf(waiting: IteratorObject<Waiting>, count: number): OutboxEntry[] {
  return waiting
    .take(count)
    .map(({ entry }) => entry)
    .toArray();
}
