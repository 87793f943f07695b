import type { Clock } from "@holdfast/common/clock.ts";
import { createTokenBucket } from "@holdfast/common/token-bucket.ts";
import type { NewAudit, OutboxEntry } from "../store/outbox-entry.ts";

/** Audit entries of refused calls on their way to the history, in order of arrival and bounded for each caller. */
export interface RefusedEntries {
  readonly size: number;
  /** False when the entry is only counted: its caller had too many within a minute, or has most of the waiting ones. */
  add(entry: NewAudit): boolean;
  oldest(count: number): OutboxEntry[];
  /** The history has these. */
  remove(entries: readonly OutboxEntry[]): void;
  /** The oldest entries that have waited for so long and were not given to `kept`. */
  unkept(waitedMs: number, count: number): OutboxEntry[];
  /** The store has these, so that they are not lost with this process. */
  kept(entries: readonly OutboxEntry[]): void;
  /** Ids of entries in the store that were pushed out since; each is told once. */
  takePushedOut(): string[];
}

interface Waiting {
  readonly entry: OutboxEntry;
  readonly caller: string;
  readonly since: number;
  isKept: boolean;
}

interface Count {
  /** The first entry that was left out, to say whose the others were. */
  leftOut: NewAudit | undefined;
  entries: number;
  more: number;
}

/** Of one caller in a minute. */
const callerMax = 100;
/** Of all that showed no good credential: sources without number must not fill the history over days either. */
const strangersRate = { burst: 500, perSecond: 0.5 };
const strangers = "anonymous";
const windowMs = 60_000;
/** While the history is away. */
const waitingMax = 2_000;

/**
 * A flood pushes out no entries of other callers: a caller's excess entries are only counted, and audited as a number.
 * Without room, the caller with most of the waiting entries gives way.
 */
export function createRefusedEntries(clock: Clock, ids: () => string): RefusedEntries {
  /** By id, the oldest first. */
  const waiting = new Map<string, Waiting>();
  /** How many of them are of each caller. */
  const held = new Map<string, number>();
  let pushedOut: string[] = [];
  let counts = new Map<string, Count>();
  let endsAt = 0;
  const ofStrangers = createTokenBucket(strangersRate, clock.monotonicMs());

  function join(entry: NewAudit): void {
    const complete: OutboxEntry = { ...entry, entry: "audit", id: ids(), occurredAt: clock.now() };
    const caller = callerOf(entry);
    waiting.set(complete.id, { entry: complete, caller, since: clock.monotonicMs(), isKept: false });
    held.set(caller, (held.get(caller) ?? 0) + 1);
  }

  function leave(id: string): void {
    const each = waiting.get(id);
    if (each === undefined) return;
    waiting.delete(id);
    const left = (held.get(each.caller) ?? 1) - 1;
    if (left === 0) held.delete(each.caller);
    else held.set(each.caller, left);
  }

  function hasRoom(caller: string): boolean {
    return waiting.size < waitingMax || makeRoom(caller);
  }

  /** Audits the number of entries that the last minute left out. */
  function turn(): void {
    const now = clock.monotonicMs();
    if (now < endsAt) return;
    endsAt = now + windowMs;
    const before = counts;
    counts = new Map();
    for (const [name, { leftOut, more }] of before) {
      if (leftOut === undefined) continue;
      if (hasRoom(callerOf(leftOut))) join({ ...leftOut, action: `${more} more refused calls`, objectId: "" });
      else counts.set(name, { leftOut, entries: 0, more });
    }
  }

  function countOf(name: string): Count {
    const count = counts.get(name) ?? { leftOut: undefined, entries: 0, more: 0 };
    if (counts.size < waitingMax) counts.set(name, count);
    return count;
  }

  /** The count that has no room for the entry. Strangers past the limit of all get no count of their own: that would be one a source. */
  function fullCount(entry: NewAudit): Count | undefined {
    const own = counts.get(callerOf(entry));
    if (own !== undefined && own.entries >= callerMax) return own;
    if (entry.actor !== strangers || ofStrangers.take(1, clock.monotonicMs())) return undefined;
    return countOf(strangers);
  }

  function leaveOut(count: Count, entry: NewAudit): void {
    count.leftOut ??= entry;
    count.more += 1;
  }

  /** Pushes out the newest entry of the caller that has most; false when that is this one. */
  function makeRoom(caller: string): boolean {
    const [fullest, most] = held.entries().reduce((a, b) => (b[1] > a[1] ? b : a), ["", 0] as [string, number]);
    if (most <= (held.get(caller) ?? 0) + 1) return false;
    const last = waiting
      .values()
      .filter((each) => each.caller === fullest)
      .toArray()
      .at(-1);
    if (last === undefined || last.entry.entry !== "audit") return false;
    leave(last.entry.id);
    if (last.isKept) pushedOut.push(last.entry.id);
    leaveOut(countOf(callerOf(last.entry)), last.entry);
    return true;
  }

  return {
    get size() {
      return waiting.size;
    },
    add(entry) {
      turn();
      const full = fullCount(entry);
      const own = full ?? countOf(callerOf(entry));
      if (full !== undefined || !hasRoom(callerOf(entry))) {
        leaveOut(own, entry);
        return false;
      }
      own.entries += 1;
      join(entry);
      return true;
    },
    oldest(count) {
      turn();
      return entriesOf(waiting.values(), count);
    },
    remove(entries) {
      for (const { id } of entries) leave(id);
    },
    unkept(waitedMs, count) {
      const before = clock.monotonicMs() - waitedMs;
      return entriesOf(
        waiting.values().filter(({ isKept, since }) => !isKept && since <= before),
        count,
      );
    },
    kept(entries) {
      for (const { id } of entries) {
        const each = waiting.get(id);
        if (each !== undefined) each.isKept = true;
      }
    },
    takePushedOut() {
      const taken = pushedOut;
      pushedOut = [];
      return taken;
    },
  };
}

/** The caller to count for: callers without a credential are told apart by their source. */
function callerOf({ organizationId, actor, source }: NewAudit): string {
  return actor === strangers ? `from ${source}` : `${organizationId} ${actor}`;
}

function entriesOf(waiting: IteratorObject<Waiting>, count: number): OutboxEntry[] {
  return waiting
    .take(count)
    .map(({ entry }) => entry)
    .toArray();
}
