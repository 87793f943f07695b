import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { ArchiveObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { ArchiveObject, LogArchiving, LogKey, LogRange, TimeSpan } from "./archive.ts";

const hourMs = 3_600_000;
const logWithinMs = 120_000;
/** Clocks that are slewed go back by less between two looks. */
const clockStepMs = 1_000;
/** Of one range: what is older has mostly expired. */
const mostRepeated = 100;
/** How often the newest moment of a range is written down; what a machine told last is newer. */
const notedEveryMs = 30_000;
/** A range's times are of its machine's clock, those of bases of the controllers': before one is deleted they may be so far apart. */
const clocksApartMs = 300_000;
/** Where the log was at, at which time: what is older than a kept base goes by it. */
const checkpointEveryMs = 6 * hourMs;

/** Is the log of this archive being brought to the store without a gap? */
export function isFollowed(log: LogArchiving | null, told: ArchiveObservation | undefined): boolean {
  return log !== null && told?.archiveId === log.archiveId && (told.state === "following" || told.state === "waiting");
}

/** Is the log that goes on from the next base still to come? A machine that cannot follow it keeps no base waiting for long. */
export function isLogAwaited(archive: ArchiveObject, told: ArchiveObservation | undefined, now: number): boolean {
  const { log } = archive.spec;
  if (log === null || now - log.since > logWithinMs) return false;
  const isStored = rangesWith(archive, told).some(({ archiveId }) => archiveId === log.archiveId);
  return !isStored || !isFollowed(log, told);
}

/** Has this archive come to its end, since the log that is next is gone? */
export function hasGap(log: LogArchiving | null, told: ArchiveObservation | undefined): boolean {
  return log !== null && told?.archiveId === log.archiveId && told.state === "gap";
}

/** Pure: the ranges with what a machine told of its archive; the very same when that is nothing new. */
export function rangesWith(archive: ArchiveObject, told: ArchiveObservation | undefined): readonly LogRange[] {
  const { log } = archive.spec;
  const ranges = archive.status.log;
  if (log === null || told?.archiveId !== log.archiveId || told.durableTime === undefined) return ranges;
  const { archiveId, keyId, keyVersion, wrappedKey } = log;
  const key = { keyId, keyVersion, wrappedKey };
  const term = Number(told.term);
  const isThis = (range: LogRange) => range.archiveId === archiveId && range.term === term;
  const known = ranges.find(isThis);
  const toTime = timestampMs(told.durableTime);
  const lastSequence = Number(told.lastSequence);
  if (known !== undefined && toTime <= known.toTime && lastSequence <= known.lastSequence) return ranges;
  const fromTime = known?.fromTime ?? (told.fromTime === undefined ? toTime : timestampMs(told.fromTime));
  // Until the machine heard of its newest key it sealed with those before.
  const keys = known?.keys ?? ranges.findLast((each) => each.archiveId === archiveId)?.keys ?? log.earlierKeys ?? [];
  const range: LogRange = {
    archiveId,
    term,
    firstSequence: known?.firstSequence ?? Number(told.firstSequence),
    lastSequence: Math.max(known?.lastSequence ?? 0, lastSequence),
    fromTime,
    toTime: Math.max(known?.toTime ?? 0, toTime),
    keys: keys.some(({ keyId }) => keyId === key.keyId) ? keys : [...keys, key],
    ...repeatedBy(known, { at: toTime, sequence: lastSequence }),
    ...(told.earlier.length > 0 && { continues: true }),
    checkpoints: checkpointsOf(known, { at: toTime, sequence: lastSequence }),
  };
  if (known !== undefined) return ranges.map((each) => (isThis(each) ? range : each));
  return [...endedRanges(ranges, told, fromTime, key), range];
}

/** The log goes on with earlier commits where the clock was set back: from the first of them to the newest one before. */
function repeatedBy(known: LogRange | undefined, now: LogRange["checkpoints"][number]): Pick<LogRange, "repeated"> {
  const before: readonly TimeSpan[] = known?.repeated ?? [];
  const isBack = known !== undefined && now.sequence > known.lastSequence && now.at < known.toTime - clockStepMs;
  const isNew = isBack && !before.some(({ from, to }) => from <= now.at && now.at <= to);
  const repeated = isNew ? [...before, { from: now.at, to: known.toTime }].slice(-mostRepeated) : before;
  return repeated.length === 0 ? {} : { repeated };
}

/** Where each term ended, its machine knows: what was noted last was a moment before, and a short one was never noted. */
function endedRanges(
  ranges: readonly LogRange[],
  { archiveId, earlier: runs }: Pick<ArchiveObservation, "archiveId" | "earlier">,
  fromTime: number,
  key: LogKey,
): LogRange[] {
  const lastTerm = Number(runs.at(-1)?.term ?? 0n);
  const ended = ranges.map((range) => {
    if (range.archiveId !== archiveId) return range;
    const run = runs.find(({ term }) => Number(term) === range.term);
    // It was written to until the next term began, however long ago that was noted.
    const ranUntil = run?.toTime === undefined ? 0 : timestampMs(run.toTime);
    const toTime = Math.max(range.toTime, ranUntil, range.term === lastTerm ? fromTime : 0);
    if (run !== undefined) return { ...range, toTime, lastSequence: Number(run.lastSequence) };
    // Of a primary whose log nobody went on with: what goes on does so from an earlier one.
    const isPassedBy = runs[0] !== undefined && range.term > Number(runs[0].term);
    return isPassedBy && range.lastSequence >= range.firstSequence ? { ...range, isAbandoned: true as const } : range;
  });
  const last = ended.findLast((range) => range.archiveId === archiveId);
  if (last === undefined) return ended;
  const { toTime, keys } = last;
  const known = keys.some(({ keyId }) => keyId === key.keyId) ? keys : [...keys, key];
  const unnoted = runs.filter(({ term }) => Number(term) > last.term);
  const added = unnoted.map((run): LogRange => {
    const [firstSequence, lastSequence] = [Number(run.firstSequence), Number(run.lastSequence)];
    const of = { archiveId, term: Number(run.term), firstSequence, lastSequence, keys: known, checkpoints: [] };
    return { ...of, fromTime: toTime, toTime, continues: true };
  });
  return [...ended, ...added];
}

/** Pure: the range that the archive of now is at; undefined while nothing of it is stored. */
export function currentRange({ spec, status }: ArchiveObject): LogRange | undefined {
  return status.log.findLast(({ archiveId }) => archiveId === spec.log?.archiveId);
}

/** Pure: is what was told worth a write? */
export function isDue(before: readonly LogRange[], after: readonly LogRange[]): boolean {
  if (before === after) return false;
  const [was, is] = [before.at(-1), after.at(-1)];
  if (before.length !== after.length || was === undefined || is === undefined) return true;
  const isBack = is.repeated?.length !== was.repeated?.length;
  return isBack || is.keys.length !== was.keys.length || is.toTime - was.toTime >= notedEveryMs;
}

/** Pure: the ranges without what no kept base needs; `oldest` is when the oldest of them began, undefined without any. */
export function rangesSince(
  ranges: readonly LogRange[],
  current: LogArchiving | null,
  oldest: number | undefined,
): readonly LogRange[] {
  const newest = ranges.findLast(({ archiveId }) => archiveId === current?.archiveId);
  const needed = ranges.filter((range) =>
    oldest === undefined
      ? range.archiveId === current?.archiveId
      : range === newest || range.toTime + clocksApartMs >= oldest,
  );
  const shorter = needed.map((range) => shortened(range, oldest));
  const isSame = shorter.length === ranges.length && shorter.every((range, at) => range === ranges[at]);
  return isSame ? ranges : shorter;
}

/** Pure: of each range that is to be less, where the objects end that go: those from its first one on. */
export function leaving(
  before: readonly LogRange[],
  after: readonly LogRange[],
): { readonly range: LogRange; readonly end: number }[] {
  return before.flatMap((range) => {
    const left = after.find(({ archiveId, term }) => archiveId === range.archiveId && term === range.term);
    const end = left?.firstSequence ?? range.lastSequence + 1;
    return end > range.firstSequence ? [{ range, end }] : [];
  });
}

function shortened(range: LogRange, oldest: number | undefined): LogRange {
  const { checkpoints } = range;
  const last = checkpoints.findLastIndex(({ at }) => oldest !== undefined && at < oldest);
  const from = checkpoints[last];
  if (last <= 0 || from === undefined) return range;
  return { ...range, firstSequence: from.sequence, fromTime: from.at, checkpoints: checkpoints.slice(last) };
}

function checkpointsOf(known: LogRange | undefined, now: LogRange["checkpoints"][number]): LogRange["checkpoints"] {
  const before = known?.checkpoints ?? [];
  const last = before.at(-1);
  return last === undefined || now.at - last.at >= checkpointEveryMs ? [...before, now] : before;
}
