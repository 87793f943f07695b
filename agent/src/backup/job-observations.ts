import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { lookUp } from "@holdfast/common/look-up.ts";
import {
  type ArchiveObservation,
  ArchiveObservationSchema,
  ArchiveRunSchema,
  type BackupObservation,
  BackupObservationSchema,
  type RestoreObservation,
  RestoreObservationSchema,
} from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { Finding } from "../engines/backup-facet.ts";
import type { Report } from "./job.ts";

/** A report with the time at which its state began, in milliseconds since 1970. */
export interface TimedReport {
  readonly report: Report;
  readonly sinceMs: number;
}

function fieldsOf({ report, sinceMs }: TimedReport) {
  return {
    text: (name: string) => String(lookUp(report, name) ?? ""),
    number: (name: string) => Number(lookUp(report, name) ?? 0),
    big: (name: string) => BigInt(Math.round(Number(lookUp(report, name) ?? 0))),
    time(name: string) {
      const ms = lookUp(report, name);
      return typeof ms === "number" ? { [name]: timestampFromMs(ms) } : {};
    },
    since: timestampFromMs(sinceMs),
  };
}

export function backupObservation(timed: TimedReport): BackupObservation {
  const { text, number, big, time, since } = fieldsOf(timed);
  return create(BackupObservationSchema, {
    backupId: text("backupId"),
    attempt: number("attempt"),
    state: text("state"),
    since,
    sourceBytes: big("sourceBytes"),
    sourceTotalBytes: big("sourceTotalBytes"),
    storedBytes: big("storedBytes"),
    storedObjects: number("storedObjects"),
    errorCode: text("errorCode"),
    error: text("error"),
    manifestSha256: text("manifestSha256"),
    fromPosition: text("fromPosition"),
    consistentPosition: text("consistentPosition"),
    engineVersion: text("engineVersion"),
    hasPageMap: text("hasPageMap") === "yes",
    ...time("dataTime"),
    ...time("consistentTime"),
  });
}

export function restoreObservation(timed: TimedReport): RestoreObservation {
  const { text, big, time, since } = fieldsOf(timed);
  const locked = timed.report["lockedUsers"];
  const findings = timed.report["findings"];
  const warnings = timed.report["warnings"];
  return create(RestoreObservationSchema, {
    restoreId: text("restoreId"),
    state: text("state"),
    reason: text("error"),
    since,
    restoredBytes: big("restoredBytes"),
    totalBytes: big("totalBytes"),
    restoredObjects: big("restoredObjects"),
    position: text("position"),
    errorCode: text("errorCode"),
    damagedObject: text("damagedObject"),
    requiredMemoryBytes: big("requiredMemoryBytes"),
    lockedUsers: Array.isArray(locked) ? locked.map(String) : [],
    findings: Array.isArray(findings) ? findings.map((finding: string) => JSON.parse(finding) as Finding) : [],
    warnings: Array.isArray(warnings) ? warnings.map(String) : [],
    ...time("reachedTime"),
  });
}

export function archiveObservation(timed: TimedReport): ArchiveObservation {
  const { text, big, time, since } = fieldsOf(timed);
  const earlier = timed.report["earlier"];
  return create(ArchiveObservationSchema, {
    archiveId: text("archiveId"),
    state: text("state"),
    reason: text("reason"),
    since,
    term: big("term"),
    branch: text("branch"),
    fromPosition: text("fromPosition"),
    durablePosition: text("durablePosition"),
    firstSequence: big("firstSequence"),
    lastSequence: big("lastSequence"),
    waitingBytes: big("waitingBytes"),
    waitingLimitBytes: big("waitingLimitBytes"),
    storedBytes: big("storedBytes"),
    earlier: Array.isArray(earlier) ? earlier.map(runOf) : [],
    ...time("durableTime"),
    ...time("fromTime"),
  });
}

/**
 * Parses a run in a report: term, first and last sequence, and the time of the last commit in milliseconds since 1970
 * (0 or absent if none was recorded), separated by blanks. Example: `3 1 42 1764316800000`.
 */
function runOf(text: unknown) {
  const [term = "0", firstSequence = "0", lastSequence = "0", toTimeMs = "0"] = String(text).split(" ");
  return create(ArchiveRunSchema, {
    term: BigInt(term),
    firstSequence: BigInt(firstSequence),
    lastSequence: BigInt(lastSequence),
    ...(Number(toTimeMs) > 0 && { toTime: timestampFromMs(Number(toTimeMs)) }),
  });
}
