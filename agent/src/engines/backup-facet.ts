import type { BackupPositions } from "@holdfast/common/backup/backup-manifest.ts";
import type { OpenedLog } from "@holdfast/common/backup/log-object.ts";
import type { Instance } from "./instance.ts";

/** How an engine's data leaves it and comes back. Everything here runs as the engine's user, and is given up with the signal. */
export interface BackupFacet {
  /** `full`: files, made consistent by the log; `snapshot`: the contents at one moment. */
  readonly kind: "full" | "snapshot";
  /** Begins to read a running engine. */
  open(instance: Instance, signal: AbortSignal): Promise<OpenedSource>;
  /** Resolves when no session of a client is left, where the settings admit none. What was acknowledged is in a backup that begins then. */
  untilNoClients(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Of what an increment can be taken; absent where every backup is whole. */
  readonly pages?: PagedStream;
  readonly restore: RestoreFacet;
  /** Looks at data that were restored and finished, in an engine that nobody reaches. */
  examine(instance: Instance, work: Examination, signal: AbortSignal): Promise<readonly Finding[]>;
  /** Absent: snapshots only. */
  readonly log?: LogFacet;
}

export interface OpenedSource {
  /** All of them are to be read to their ends; in any order, or at the same time. */
  readonly streams: readonly SourceStream[];
  /** An estimate for progress; 0 when it is not known. */
  readonly totalBytes: number;
  /** After all streams ended. */
  end(): Promise<SourceEnd>;
  close(): Promise<void>;
}

export interface SourceStream {
  readonly name: string;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** A stream that is a tar of files which change by pages: an increment is told from the pages that it has. */
export interface PagedStream {
  readonly stream: string;
  readonly pageBytes: number;
  /** Where a restore places the files. */
  root(instance: Instance): string;
}

export interface SourceEnd {
  readonly version: string;
  /** No later than the data: whatever the engine acknowledged before is in them. */
  readonly dataTime: Date;
  readonly positions: BackupPositions | null;
}

export interface Examination {
  readonly target: RecoveryTarget;
  /** Where files of its own go meanwhile; gone afterwards. */
  readonly scratch: string;
}

/** What one look at restored data found. */
export interface Finding {
  /**
   * `structure`: tables and indexes are sound; `heartbeat`: commits reach the target; `contents`: all that the backup has;
   * `databases`: names those that are invalid, as they were in the source.
   */
  readonly name: "structure" | "heartbeat" | "contents" | "databases";
  readonly passed: boolean;
  readonly detail: string;
}

export interface RestoreFacet {
  /** Puts a stream of a backup where it belongs, in a machine without data. */
  place(instance: Instance, stream: string, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>;
  /**
   * Makes placed data what a start finds in order: recovers to the target in an engine that nobody reaches, checks that it was
   * reached, and severs a copy from its source. Throws TargetNotReached. What a crash left of an earlier call does not matter.
   */
  finish(instance: Instance, plan: RecoveryPlan, signal: AbortSignal): Promise<RecoveryEnd>;
}

export interface RecoveryPlan {
  readonly target: RecoveryTarget;
  /** The data stay those of the same service: whatever else it is connected to goes on. Otherwise they are severed from it. */
  readonly isSameService: boolean;
  /** Log behind the backup; undefined when there is none to read. */
  readonly log: LogReader | undefined;
  /** Where files of its own go meanwhile; gone afterwards. */
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
  /** Newest commit in the data, where the engine can tell. */
  readonly reachedTime: Date | undefined;
  /** Users who are not in the settings and were left without a password. */
  readonly lockedUsers: readonly string[];
  /** Sentences for users on what is in the data and was left as it is; absent: none. */
  readonly warnings?: readonly string[];
}

/** What is in the log does not lead to the target: no repetition heals it. */
export class TargetNotReached extends Error {
  override readonly name = "TargetNotReached";
}

/** Replay takes more memory than the plan has: no repetition heals it. */
export class PlanTooSmall extends Error {
  override readonly name = "PlanTooSmall";
}

/** The archived log, checked object by object: contiguous from the first to the last. */
export interface LogReader {
  readonly count: number;
  /** From 0 on. Throws what the store failed with, or BackupDamaged. */
  at(index: number): Promise<OpenedLog>;
  /** The greatest value of each setting that the log was written under; empty for a log of an older version. */
  settings(): Promise<Readonly<Record<string, number>>>;
}

export interface LogFacet {
  /**
   * Follows the log from a position on, or from the engine's own when there is none. Ends with the signal; throws LogGone when the
   * engine no longer has what is next, and whatever else breaks the stream.
   */
  follow(instance: Instance, from: LogPosition | undefined, signal: AbortSignal): LogStream;
  /**
   * Commits, and answers a moment from before that and a position behind it, which the stream reaches whatever is written next. What
   * was acknowledged before the moment is before the position.
   */
  commit(instance: Instance, signal: AbortSignal): Promise<{ readonly time: Date; readonly position: string }>;
  /** Settings of a running engine that replay of its log takes at least as much of. */
  settings(instance: Instance, signal: AbortSignal): Promise<Readonly<Record<string, number>>>;
  /** End of the engine's log, and how much of it the engine keeps for who follows; 0 for all. */
  kept(instance: Instance, signal: AbortSignal): Promise<{ readonly end: string; readonly limitBytes: number }>;
  /** Bytes from one position to another; negative when the second one is first. */
  distance(from: string, to: string): number;
  /**
   * Writes down in the data how far the archive is: a replica has it with them, and keeps the log behind that position. `state` is for
   * `noted` of whoever has these data later.
   */
  note(instance: Instance, position: string, state: string, signal: AbortSignal): Promise<void>;
  noted(instance: Instance, signal: AbortSignal): Promise<string | undefined>;
  /** Where the engine's log left a branch; undefined for the one that it is on. Throws LogGone for one that it never was on. */
  branchEnd(instance: Instance, branch: string, signal: AbortSignal): Promise<string | undefined>;
}

export interface LogStream {
  /** Contiguous pieces, each of one branch. */
  readonly pieces: AsyncIterable<LogPiece>;
  /** End of the engine's log, as far as it told; empty before it did. */
  readonly end: string;
  /** Tells the engine what is durable elsewhere: it keeps the rest. Never told of more than that. */
  durable(position: string): void;
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

/** The engine has removed log that is not archived yet: there is a gap. */
export class LogGone extends Error {
  override readonly name = "LogGone";
}
