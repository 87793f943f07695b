import type { BackupPositions } from "@holdfast/common/backup/backup-manifest.ts";
import type { OpenedLog } from "@holdfast/common/backup/log-object.ts";
import type { Instance } from "./instance.ts";

/**
 * Backup and restore of one engine. Every call runs as the engine's user, in a component beside the engine, and ends
 * with its signal.
 *
 * A backup is read as named byte streams (`open`), which the agent compresses, encrypts and stores. A restore unpacks
 * the same streams into an empty machine (`restore.unpack`) and recovers them to a target (`restore.finish`). Engines
 * with a log also stream it continuously (`log.follow`), so that any point in time between two backups is a target.
 * Positions are strings that only the engine's own functions compare, such as PostgreSQL's LSN `0/3000060`.
 */
export interface BackupFacet {
  /** `full`: data files, made consistent by the log; `snapshot`: the contents at one moment. */
  readonly kind: "full" | "snapshot";
  /** Starts to read a running engine. */
  open(instance: Instance, signal: AbortSignal, options?: SourceOptions): Promise<OpenedSource>;
  /**
   * Resolves when no client session remains, once the settings admit none. A backup started after that contains every
   * acknowledged write.
   */
  untilNoClients(instance: Instance, signal: AbortSignal): Promise<void>;
  /** The stream that increments are taken of; absent where every backup is complete. */
  readonly pages?: PagedStream;
  readonly restore: RestoreFacet;
  /** Checks restored data in an engine that accepts no clients. */
  examine(instance: Instance, work: Examination, signal: AbortSignal): Promise<readonly Finding[]>;
  /** Absent for an engine with snapshots only. */
  readonly log?: LogFacet;
}

export interface SourceOptions {
  /** Number of the backup's attempt, from 1 on: a later one may disturb users more. */
  readonly attempt?: number;
}

export interface OpenedSource {
  /** Streams of the backup. The caller reads all of them to their ends, in any order or concurrently. */
  readonly streams: readonly SourceStream[];
  /** Estimate for progress; 0 if unknown. */
  readonly totalBytes: number;
  /** Call after all streams ended. */
  end(): Promise<SourceEnd>;
  close(): Promise<void>;
}

export interface SourceStream {
  readonly name: string;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** A tar stream of files that change page by page. An increment is computed from digests of its pages. */
export interface PagedStream {
  readonly stream: string;
  readonly pageBytes: number;
  /** Directory that a restore unpacks the files into. */
  root(instance: Instance): string;
}

export interface SourceEnd {
  readonly version: string;
  /** Lower bound of the data's age: they contain every write that the engine acknowledged before this time. */
  readonly dataTime: Date;
  /** First time that can be restored with the log after the backup; absent: the end of the backup. */
  readonly consistentTime?: Date;
  /** Null for an engine without a log, and for a snapshot on which no log can be replayed. */
  readonly positions: BackupPositions | null;
}

export interface Examination {
  readonly target: RecoveryTarget;
  /** Directory for temporary files; removed afterwards. */
  readonly scratch: string;
}

/** Result of one check of restored data. */
export interface Finding {
  /**
   * `structure`: tables and indexes are intact. `heartbeat`: commits reach close to the target. `contents`: all keys of
   * the backup were loaded. `databases`: lists databases that are invalid, as they were in the source.
   */
  readonly name: "structure" | "heartbeat" | "contents" | "databases";
  readonly passed: boolean;
  readonly detail: string;
}

export interface RestoreFacet {
  /** Unpacks one stream of a backup into a machine without data. */
  unpack(instance: Instance, stream: string, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>;
  /**
   * Recovers unpacked data to the target, in an engine that accepts no clients, so that the next start finds them in
   * order. Checks that the target was reached, and detaches a copy from its source. Throws TargetNotReached or
   * PlanTooSmall. May be repeated after a crash.
   */
  finish(instance: Instance, plan: RecoveryPlan, signal: AbortSignal): Promise<RecoveryEnd>;
}

export interface RecoveryPlan {
  readonly target: RecoveryTarget;
  /**
   * True if the restored data continue the same service, with its slots and subscriptions. If false they are a copy and
   * are detached from the service.
   */
  readonly isSameService: boolean;
  /** Log that follows the backup; undefined if none is to be read. */
  readonly log: ArchivedLogReader | undefined;
  /** Directory for temporary files; removed afterwards. */
  readonly scratch: string;
  report(progress: RecoveryProgress): void;
}

export type RecoveryTarget =
  | { readonly kind: "backup_end" }
  | { readonly kind: "log_end" }
  | { readonly kind: "time"; readonly time: Date };

export interface RecoveryProgress {
  readonly step: "recovering" | "severing";
  readonly position: string;
  readonly reachedTime: Date | undefined;
}

export interface RecoveryEnd {
  readonly position: string;
  /** Time of the newest commit in the data, where the engine records it. */
  readonly reachedTime: Date | undefined;
  /** Users that are not in the settings and lost their passwords. */
  readonly lockedUsers: readonly string[];
  /** Sentences for users about data that the restore did not change; absent: none. */
  readonly warnings?: readonly string[];
}

/** The log ends before the target of a restore. Permanent: retrying does not help. */
export class TargetNotReached extends Error {
  override readonly name = "TargetNotReached";
}

/** Replay needs more memory than the machine has. Permanent: retrying does not help. */
export class PlanTooSmall extends Error {
  override readonly name = "PlanTooSmall";
  /** Memory of a machine that can replay the log; 0 if that is unknown. */
  readonly requiredBytes: number;

  constructor(message: string, requiredBytes = 0) {
    super(message);
    this.requiredBytes = requiredBytes;
  }
}

/** The data contain something that no backup can, with a message for users. Permanent: retrying does not help. */
export class SourceUnreadable extends Error {
  override readonly name = "SourceUnreadable";
}

const maxReason = 500;

/** The engine refused to give its data, with a reason for users. Another attempt may succeed. */
export class SourceRefused extends Error {
  override readonly name = "SourceRefused";

  constructor(message: string, options?: ErrorOptions) {
    super(message.length > maxReason ? `${message.slice(0, maxReason)}...` : message, options);
  }
}

/** The archived log as verified objects, contiguous from the first to the last. */
export interface ArchivedLogReader {
  readonly count: number;
  /** `index` counts from 0. Throws the store's error, or BackupDamaged. */
  at(index: number): Promise<OpenedLog>;
  /**
   * The greatest value of each setting that the log was written under between the restored base and the target; empty
   * if the log does not record them.
   */
  settings(): Promise<Readonly<Record<string, number>>>;
}

export interface LogFacet {
  /**
   * Follows the log from a position on, or from where the engine still has it. Ends with the signal. Throws LogRemoved
   * if the engine no longer has the next bytes, and any error of the stream.
   */
  follow(instance: Instance, from: LogPosition | undefined, signal: AbortSignal): LogStream;
  /**
   * Commits a heartbeat. Returns a time before the commit and a position after it: every write that was acknowledged
   * before `time` lies before `position`. The stream reaches `position` even if nothing else is written.
   */
  commit(instance: Instance, signal: AbortSignal): Promise<{ readonly time: Date; readonly position: string }>;
  /** Settings of the running engine that a replay of its log needs at least as much of. */
  settings(instance: Instance, signal: AbortSignal): Promise<Readonly<Record<string, number>>>;
  /** End of the engine's log, and the bytes that the engine retains for a follower; 0 for no limit. */
  retention(instance: Instance, signal: AbortSignal): Promise<{ readonly end: string; readonly limitBytes: number }>;
  /** Bytes from one position to another; negative if the second one comes first. */
  distance(from: string, to: string): number;
  /**
   * Writes the archive's progress into the data, so that replicas have it too and retain the log from `position` on.
   * `state` is opaque; after a promotion the new primary's agent reads it by `readArchiveState`.
   */
  saveArchiveState(instance: Instance, position: string, state: string, signal: AbortSignal): Promise<void>;
  readArchiveState(instance: Instance, signal: AbortSignal): Promise<string | undefined>;
  /**
   * End of a branch of the engine's log (in PostgreSQL a timeline, such as `3`), as a position; undefined for the
   * current branch. Throws LogRemoved for a branch that is not an ancestor of the current one.
   */
  branchEnd(instance: Instance, branch: string, signal: AbortSignal): Promise<string | undefined>;
}

export interface LogStream {
  /** Contiguous pieces, each of one branch. */
  readonly pieces: AsyncIterable<LogPiece>;
  /** Last reported end of the engine's log; empty before the first report. */
  readonly end: string;
  /** Reports to the engine that the log is stored durably up to this position; the engine retains later log. */
  confirmDurable(position: string): void;
}

export interface LogPosition {
  readonly branch: string;
  readonly position: string;
}

export interface LogPiece {
  readonly branch: string;
  readonly from: string;
  readonly to: string;
  readonly bytes: Buffer;
}

/** The engine removed log that was not archived yet, which leaves a gap. */
export class LogRemoved extends Error {
  override readonly name = "LogRemoved";
}

/** Index of the first object whose header has a later commit time; the last object if none does. */
export async function firstObjectAfter(log: Pick<ArchivedLogReader, "count" | "at">, time: Date): Promise<number> {
  let low = 0;
  let high = log.count - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    const { header } = await log.at(middle);
    if (header.time !== "" && Date.parse(header.time) > time.getTime()) high = middle;
    else low = middle + 1;
  }
  return low;
}
