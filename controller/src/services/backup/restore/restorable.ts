import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { ArchiveObject, LogRange, TimeSpan } from "../archive/archive.ts";
import { withoutDamaged } from "../backup-chain.ts";
import { type BackupObject, firstRecoveryPoint, lacksLogPosition } from "../backup.ts";
import { withoutHoles } from "../log/log-holes.ts";

/** The restorable window: every time in the span, except in its gaps. */
export interface Restorable {
  readonly span: TimeSpan | undefined;
  readonly gaps: readonly TimeSpan[];
}

/** The window that the completed backups (oldest first) and the archive's log can restore. */
export function restorableOf(
  databaseType: string,
  archive: ArchiveObject | undefined,
  completed: readonly BackupObject[],
): Restorable {
  const intact = withoutDamaged(completed);
  const moments = intact.flatMap((backup) => firstRecoveryPoint(backup) ?? []);
  const first = moments[0];
  const last = moments.at(-1);
  if (first === undefined || last === undefined) return { span: undefined, gaps: [] };
  if (engineOf(databaseType)?.backups?.restorePoints !== "any_second")
    return { span: { from: first, to: last }, gaps: [] };
  const log = withoutHoles(archive?.status.log ?? []);
  const covered = repeatedMoments(log).reduce(without, spansOf(intact, log));
  const from = covered[0]?.from;
  const to = covered.at(-1)?.to;
  if (from === undefined || to === undefined) return { span: undefined, gaps: [] };
  const gaps = covered.flatMap((span, index) => {
    const next = covered[index + 1];
    return next === undefined || next.from <= span.to ? [] : [{ from: span.to, to: next.from }];
  });
  return { span: { from, to }, gaps };
}

/** Maximum difference of commit times from the recorded times. */
const clockToleranceMs = 10_000;

/**
 * Spans in which commit times occur twice, because a primary's clock was behind its predecessor's, or was set back. The
 * log has two positions for each such time, and neither is exact: a restore would lack acknowledged commits or have
 * later ones.
 */
function repeatedMoments(log: readonly LogRange[]): TimeSpan[] {
  const between = chainsOf(log).flatMap((chain) => {
    let reached = Number.NEGATIVE_INFINITY;
    return chain.flatMap(({ fromTime, toTime }) => {
      const before = reached;
      reached = Math.max(reached, toTime);
      return fromTime < before ? [{ from: fromTime, to: before }] : [];
    });
  });
  const all = [...between, ...log.flatMap(({ repeated = [] }) => repeated)];
  return all.map(({ from, to }) => ({ from: from - clockToleranceMs, to: to + clockToleranceMs }));
}

/** The spans without the times of another span. */
function without(spans: readonly TimeSpan[], { from, to }: TimeSpan): TimeSpan[] {
  return spans.flatMap((span) =>
    span.to <= from || span.from >= to
      ? [span]
      : [
          ...(span.from <= from ? [{ from: span.from, to: from }] : []),
          ...(span.to >= to ? [{ from: to, to: span.to }] : []),
        ],
  );
}

/** Log without a gap through the terms of one archive: each range continues the one before. */
type LogChain = readonly [LogRange, ...LogRange[]];

/**
 * The log that follows a base backup: from the range in which the backup began to the end of its chain or the next
 * hole. Undefined if there is none.
 */
export function logAfter(base: BackupObject, ranges: readonly LogRange[]): LogChain | undefined {
  const log = withoutHoles(ranges);
  const { startedAt } = base.status;
  const reachesFrom = firstRecoveryPoint(base);
  if (startedAt === null || reachesFrom === null || lacksLogPosition(base)) return undefined;
  // Later ranges do not continue an abandoned range.
  const current = log.findLast(({ fromTime }) => fromTime <= startedAt);
  const chains = current?.isAbandoned === true ? [[current] as const] : chainsOf(log);
  for (const chain of chains) {
    const first = chain.findLastIndex(({ fromTime }) => fromTime <= startedAt);
    const [from, ...rest] = chain.slice(Math.max(first, 0));
    if (first < 0 || from === undefined || endOf([from, ...rest]) < reachesFrom) continue;
    // A base backup that was taken in a tail is continued by that tail only.
    const isInTail = base.status.term === from.term && from.tail !== undefined && reachesFrom > from.tail.fromTime;
    return isInTail ? withTail([from]) : [from, ...rest];
  }
  return undefined;
}

/**
 * The log that restores a time (milliseconds since 1970; null: the end of the log) from a base backup: the log after
 * the backup, or its beginning up to the end of the tail that has the time.
 */
export function logTo(base: BackupObject, ranges: readonly LogRange[], target: number | null): LogChain | undefined {
  const chain = logAfter(base, ranges);
  if (chain === undefined || target === null) return chain;
  const at = chain.findIndex(({ tail }) => tail !== undefined && tail.fromTime < target && target <= tail.toTime);
  const [first, ...others] = chain.slice(0, at + 1);
  return first === undefined ? chain : withTail([first, ...others]);
}

/** The chain with its last range extended to the end of its tail. */
function withTail(chain: LogChain): LogChain {
  const { tail, ...range } = chain.at(-1) ?? chain[0];
  if (tail === undefined) return chain;
  const last = { ...range, lastSequence: tail.lastSequence, toTime: tail.toTime };
  const [first, ...others] = chain.slice(0, -1);
  return first === undefined ? [last] : [first, ...others, last];
}

function chainsOf(log: readonly LogRange[]): LogChain[] {
  const chains: [LogRange, ...LogRange[]][] = [];
  for (const range of log) {
    const before =
      range.continues === true && range.isAbandoned !== true
        ? chains.findLast((chain) => chain.at(-1)?.archiveId === range.archiveId && chain.at(-1)?.isAbandoned !== true)
        : undefined;
    if (before === undefined) chains.push([range]);
    else before.push(range);
  }
  return chains;
}

function endOf(chain: LogChain): number {
  return (chain.at(-1) ?? chain[0]).toTime;
}

/** The span that each chain can restore, beginning with its first base backup, oldest first. */
function spansOf(completed: readonly BackupObject[], log: readonly LogRange[]): readonly TimeSpan[] {
  const spans = new Map<string, TimeSpan>();
  for (const base of completed) {
    const last = logAfter(base, log)?.at(-1);
    const from = firstRecoveryPoint(base);
    if (last === undefined || from === null) continue;
    const end = `${last.archiveId} ${last.term} ${last.lastSequence}`;
    if (!spans.has(end)) spans.set(end, { from, to: last.toTime });
  }
  return joined([...spans.values()].toSorted((a, b) => a.from - b.from));
}

/** Joins overlapping spans: a tail and the log of the next term can cover the same times. */
function joined(ordered: readonly TimeSpan[]): readonly TimeSpan[] {
  const spans: TimeSpan[] = [];
  for (const { from, to } of ordered) {
    const last = spans.at(-1);
    if (last === undefined || from > last.to) spans.push({ from, to });
    else spans.splice(-1, 1, { from: last.from, to: Math.max(last.to, to) });
  }
  return spans;
}
