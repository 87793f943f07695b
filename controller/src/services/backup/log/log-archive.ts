import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { ArchiveObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import { taskTarget } from "../../service/member/member-roles.ts";
import { lastStored } from "./log-holes.ts";
import type { ArchiveObject, LogArchiving, LogKey, LogRange, TimeSpan } from "../archive/archive.ts";

const hourMs = 3_600_000;
const logStartTimeoutMs = 120_000;
/**
 * Minimum backward step that counts as a clock set back. A clock that is only slewed steps back less between reports.
 */
const clockStepMinMs = 1_000;
/** Maximum number of repeated spans of one range; older spans have mostly expired. */
const repeatedMax = 100;
/** Interval at which the end of a range is recorded. Until then the machine's report is newer than the record. */
const recordIntervalMs = 30_000;
/**
 * Additional retention of log, because times of ranges are by the machine's clock and times of bases by a controller's.
 */
const clockSkewMaxMs = 300_000;
/** Interval of the checkpoints, by which old log is deleted. */
const checkpointIntervalMs = 6 * hourMs;

/** True if the log of this archive is being stored without a gap. */
export function isFollowed(log: LogArchiving | null, report: ArchiveObservation | undefined): boolean {
  return (
    log !== null && report?.archiveId === log.archiveId && (report.state === "following" || report.state === "waiting")
  );
}

/**
 * True if a base backup should wait because the machine does not store its log yet. A machine that cannot store the log
 * delays the base backup by at most 2 minutes.
 */
export function awaitsLog(archive: ArchiveObject, report: ArchiveObservation | undefined, now: number): boolean {
  const { log } = archive.spec;
  if (log === null || now - log.since > logStartTimeoutMs) return false;
  const isStored = rangesWith(archive, report).some(({ archiveId }) => archiveId === log.archiveId);
  return !isStored || !isFollowed(log, report);
}

/** True if the machine reports that this archive ended because it lacks a part of the log. */
export function hasGap(log: LogArchiving | null, report: ArchiveObservation | undefined): boolean {
  return log !== null && report?.archiveId === log.archiveId && report.state === "gap";
}

/** The ranges, extended by the machine's report; the same array if nothing changed. */
export function rangesWith(archive: ArchiveObject, report: ArchiveObservation | undefined): readonly LogRange[] {
  const { log } = archive.spec;
  const ranges = archive.status.log;
  if (log === null || report?.archiveId !== log.archiveId || report.durableTime === undefined) return ranges;
  const { archiveId, keyId, keyVersion, wrappedKey } = log;
  const key = { keyId, keyVersion, wrappedKey };
  const term = Number(report.term);
  const isThis = (range: LogRange) => range.archiveId === archiveId && range.term === term;
  const recorded = ranges.find(isThis);
  const toTime = timestampMs(report.durableTime);
  const lastSequence = Number(report.lastSequence);
  if (recorded !== undefined && toTime <= recorded.toTime && lastSequence <= recorded.lastSequence) return ranges;
  const fromTime = recorded?.fromTime ?? (report.fromTime === undefined ? toTime : timestampMs(report.fromTime));
  // The machine used the earlier keys until it got the newest one.
  const keys = recorded?.keys ?? ranges.findLast((each) => each.archiveId === archiveId)?.keys ?? log.earlierKeys ?? [];
  const range: LogRange = {
    archiveId,
    term,
    firstSequence: recorded?.firstSequence ?? Number(report.firstSequence),
    lastSequence: Math.max(recorded?.lastSequence ?? 0, lastSequence),
    fromTime,
    toTime: Math.max(recorded?.toTime ?? 0, toTime),
    keys: keys.some(({ keyId }) => keyId === key.keyId) ? keys : [...keys, key],
    ...repeatedBy(recorded, { at: toTime, sequence: lastSequence }),
    ...(recorded?.holes && { holes: recorded.holes }),
    ...(recorded?.tail && { tail: recorded.tail }),
    ...(report.earlier.length > 0 && { continues: true }),
    checkpoints: checkpointsOf(recorded, { at: toTime, sequence: lastSequence }),
  };
  if (recorded !== undefined) return ranges.map((each) => (isThis(each) ? range : each));
  return [...withTermEnds(ranges, report, fromTime, key), range];
}

/**
 * Adds a repeated span if the clock was set back: commit times repeat from the first new one to the newest earlier one.
 */
function repeatedBy(recorded: LogRange | undefined, now: LogRange["checkpoints"][number]): Pick<LogRange, "repeated"> {
  const before: readonly TimeSpan[] = recorded?.repeated ?? [];
  const isBack =
    recorded !== undefined && now.sequence > recorded.lastSequence && now.at < recorded.toTime - clockStepMinMs;
  const isNew = isBack && !before.some(({ from, to }) => from <= now.at && now.at <= to);
  const repeated = isNew ? [...before, { from: now.at, to: recorded.toTime }].slice(-repeatedMax) : before;
  return repeated.length === 0 ? {} : { repeated };
}

/**
 * Sets the ends of earlier terms as the next primary reports them: recorded ends are stale, and short terms may not be
 * recorded at all.
 */
function withTermEnds(
  ranges: readonly LogRange[],
  { archiveId, earlier: runs }: Pick<ArchiveObservation, "archiveId" | "earlier">,
  fromTime: number,
  key: LogKey,
): LogRange[] {
  const lastTerm = Number(runs.at(-1)?.term ?? 0n);
  const ended = ranges.map((range) => {
    if (range.archiveId !== archiveId) return range;
    const run = runs.find(({ term }) => Number(term) === range.term);
    // Log of the term was written until the next term began.
    const ranUntil = run?.toTime === undefined ? 0 : timestampMs(run.toTime);
    const toTime = Math.max(range.toTime, ranUntil, range.term === lastTerm ? fromTime : 0);
    if (run !== undefined) {
      const end = Number(run.lastSequence);
      const branchedAt = run.toTime === undefined ? Number.NaN : timestampMs(run.toTime);
      return { ...range, toTime, lastSequence: end, ...tailAfter(range, end, branchedAt) };
    }
    // A later term branched off from a term before this one, so the end of this range is abandoned.
    const isSkipped = runs[0] !== undefined && range.term > Number(runs[0].term);
    return isSkipped && range.lastSequence >= range.firstSequence ? { ...range, isAbandoned: true as const } : range;
  });
  const last = ended.findLast((range) => range.archiveId === archiveId);
  if (last === undefined) return ended;
  const { toTime, keys } = last;
  const allKeys = keys.some(({ keyId }) => keyId === key.keyId) ? keys : [...keys, key];
  const unrecorded = runs.filter(({ term }) => Number(term) > last.term);
  const added = unrecorded.map((run): LogRange => {
    const [firstSequence, lastSequence] = [Number(run.firstSequence), Number(run.lastSequence)];
    const of = { archiveId, term: Number(run.term), firstSequence, lastSequence, keys: allKeys, checkpoints: [] };
    return { ...of, fromTime: toTime, toTime, continues: true };
  });
  return [...ended, ...added];
}

/**
 * The tail of a range whose end moved back: log that only its primary had is stored after the end. `fromTime` is the
 * newest commit up to the end; NaN if the agent did not report it.
 */
export function tailAfter(range: LogRange, end: number, fromTime: number): Pick<LogRange, "tail"> {
  const { tail, lastSequence, toTime } = range;
  const reached = tail?.toTime ?? toTime;
  if (lastSequence <= end || !(reached > fromTime)) return {};
  const from = Math.min(fromTime, tail?.fromTime ?? fromTime);
  return { tail: { lastSequence: lastStored(range), fromTime: from, toTime: reached } };
}

/** The newest range of the current archive; undefined while no log is stored in it. */
export function currentRange({ spec, status }: ArchiveObject): LogRange | undefined {
  return status.log.findLast(({ archiveId }) => archiveId === spec.log?.archiveId);
}

/** True if the ranges changed enough to be recorded. */
export function isWorthRecording(before: readonly LogRange[], after: readonly LogRange[]): boolean {
  if (before === after) return false;
  const [was, is] = [before.at(-1), after.at(-1)];
  if (before.length !== after.length || was === undefined || is === undefined) return true;
  const isBack = is.repeated?.length !== was.repeated?.length;
  return isBack || is.keys.length !== was.keys.length || is.toTime - was.toTime >= recordIntervalMs;
}

/**
 * The ranges that retained base backups need. `oldest` is the start of the oldest base backup, in milliseconds since
 * 1970; undefined if there is none.
 */
export function rangesSince(
  ranges: readonly LogRange[],
  current: LogArchiving | null,
  oldest: number | undefined,
): readonly LogRange[] {
  const newest = ranges.findLast(({ archiveId }) => archiveId === current?.archiveId);
  const needed = ranges.filter((range) =>
    oldest === undefined
      ? range.archiveId === current?.archiveId
      : range === newest || range.toTime + clockSkewMaxMs >= oldest,
  );
  const shorter = needed.map((range) => shortened(range, oldest));
  const isSame = shorter.length === ranges.length && shorter.every((range, at) => range === ranges[at]);
  return isSame ? ranges : shorter;
}

/** The ranges that are shortened or dropped, each with the first sequence number that is retained. */
export function rangesToDelete(
  before: readonly LogRange[],
  after: readonly LogRange[],
): { readonly range: LogRange; readonly end: number }[] {
  return before.flatMap((range) => {
    const remaining = after.find(({ archiveId, term }) => archiveId === range.archiveId && term === range.term);
    const end = remaining?.firstSequence ?? lastStored(range) + 1;
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

function checkpointsOf(recorded: LogRange | undefined, now: LogRange["checkpoints"][number]): LogRange["checkpoints"] {
  const before = recorded?.checkpoints ?? [];
  const last = before.at(-1);
  return last === undefined || now.at - last.at >= checkpointIntervalMs ? [...before, now] : before;
}

/**
 * The ranges, extended by the reports of the members. A replaced primary may have stored log after its last recorded
 * report, so its last report is used until the range of the next term is recorded.
 */
export function reportedRanges(
  archive: ArchiveObject,
  service: ManagedServiceObject,
  reportOf: (machineId: string) => ArchiveObservation | undefined,
): readonly LogRange[] {
  const { id: primary } = taskTarget(service);
  const term = currentRange(archive)?.term;
  const former = service.spec.nodes.find(
    ({ id }) => id !== primary && term !== undefined && Number(reportOf(id)?.term ?? -1n) === term,
  );
  const before = former === undefined ? archive.status.log : rangesWith(archive, reportOf(former.id));
  return rangesWith({ ...archive, status: { ...archive.status, log: before } }, reportOf(primary));
}
