import { buffer } from "node:stream/consumers";
import { BackupDamaged } from "@holdfast/common/backup/backup-reader.ts";
import {
  type LogHeader,
  type LogSettings,
  newLogSecrets,
  openLog,
  sealLog,
} from "@holdfast/common/backup/log-object.ts";
import { logObject } from "@holdfast/common/backup/object-names.ts";
import { type LogFacet, LogRemoved, type LogPiece, type LogPosition } from "../engines/backup-facet.ts";
import { type ArchiveState, writeArchiveState } from "./archive-state.ts";
import type { ArchiveJob, JobKey, Report, ReportFields } from "./job.ts";
import { settingsWith } from "./log-settings.ts";
import { ObjectDiffers } from "./store-client.ts";
import type { JobContext } from "./job-context.ts";

/** Stores log as objects and tracks the archive's progress. */
export interface ArchiveWriter {
  /** Position at which to stream the log; undefined for a new archive. */
  readonly position: LogPosition | undefined;
  /** Newest time that can be restored, in milliseconds since 1970; 0 without one. */
  readonly durableTimeMs: number;
  /** Sets the key for the next objects. */
  setKey(key: JobKey): void;
  /** Stores the pieces; resolves with the position up to which the log is durable. */
  store(pieces: readonly LogPiece[], signal: AbortSignal): Promise<string>;
  /**
   * Makes the engine commit, and resolves with a position that later log reaches; undefined if the engine does not
   * respond.
   */
  recordCommit(signal: AbortSignal): Promise<string | undefined>;
  /** Reads the engine's settings, which apply to later log. Resolves with false if the engine does not respond. */
  recordSettings(signal: AbortSignal): Promise<boolean>;
  waitingBytes(end: string): number;
  /** Limit of log that the engine retains until it is durable, in bytes. */
  setLimit(bytes: number): void;
  reportOf(state: string, reason?: string): Report;
  sendReport(state: string, reason?: string, waitingBytes?: number): void;
}

const hourMs = 3_600_000;
const minUrlsAhead = 75;
const maxUrlsAhead = 3_000;
const recentMs = 600_000;

export function createArchiveWriter(
  job: ArchiveJob,
  { instance, store, urls, link, now }: JobContext,
  log: LogFacet,
  adopted: ArchiveState | undefined,
): ArchiveWriter {
  const { archiveId, service, term } = job;
  const { data } = instance.paths;
  let key = job.key;
  const keys = new Map([...job.earlierKeys, job.key].map(({ id, secret }) => [id, Buffer.from(secret, "base64")]));
  let state = continued(adopted);
  /** Commit times at positions that are not durable yet. */
  let commits: { readonly time: Date; readonly position: string }[] = [];
  /** Settings of the streamed engine; undefined before its first response. */
  let engineSettings: LogSettings["values"] | undefined;
  let recent: number[] = [];
  let waitingLimitBytes = 0;

  /** Continues a stored state. Object numbers restart with each term; the log continues. */
  function continued(previous: ArchiveState | undefined): ArchiveState | undefined {
    if (previous === undefined || previous.archiveId !== archiveId) return undefined;
    if (previous.term === term) return previous;
    const { term: previousTerm, firstSequence, lastSequence, durablePosition: fromPosition, earlier = [] } = previous;
    const { durableTimeMs: toTimeMs } = previous;
    const run = { term: previousTerm, firstSequence, lastSequence, ...(toTimeMs > 0 && { toTimeMs }) };
    const runs = lastSequence < firstSequence ? earlier : [...earlier, run];
    return { ...previous, term, firstSequence: 1, lastSequence: 0, fromPosition, fromTimeMs: now(), earlier: runs };
  }

  /** Starts after the objects of an earlier archive of the same term. */
  function firstState({ branch, from }: LogPiece): ArchiveState {
    const lastSequence = adopted?.term === term ? adopted.lastSequence : 0;
    return {
      archiveId,
      term,
      branch,
      firstSequence: lastSequence + 1,
      lastSequence,
      fromPosition: from,
      durablePosition: from,
      fromTimeMs: now(),
      durableTimeMs: 0,
      storedBytes: 0,
    };
  }

  /** Prefetches URLs for an hour, estimated by the last ten minutes. */
  function prefetchUrls(sequence: number, signal: AbortSignal): void {
    recent = [...recent.filter((at) => at > now() - recentMs), now()];
    const count = Math.min(maxUrlsAhead, Math.max(minUrlsAhead, Math.ceil((recent.length * hourMs) / recentMs)));
    const keys = Array.from({ length: count }, (_, i) => logObject({ service, term }, sequence + 1 + i));
    urls.prefetch("PUT", keys, signal);
  }

  /**
   * Returns the end of an existing object of this archive that an interrupted run stored without recording it.
   * Undefined for an object of another archive, or one that does not start at `from`.
   */
  async function storedEnd(sequence: number, from: string, signal: AbortSignal): Promise<string | undefined> {
    const stored = await store.get(logObject({ service, term }, sequence), signal);
    if (stored === undefined) throw new Error("an object that existed is missing");
    const bytes = await buffer(stored);
    try {
      const { header } = openLog(bytes, { service, term, sequence }, (id) => keys.get(id));
      return header.from === from ? header.to : undefined;
    } catch (error) {
      if (error instanceof BackupDamaged) return undefined;
      throw error;
    }
  }

  /**
   * Stores the object under the first number from `next` on that is free or already has it. `isFirst` is true for the
   * first object of the archive.
   */
  async function put(
    next: number,
    isFirst: boolean,
    bytes: Buffer,
    range: Pick<LogHeader, "branch" | "from" | "to" | "settings">,
    signal: AbortSignal,
  ): Promise<{ readonly sequence: number; readonly to: string; readonly size: number }> {
    const time = commits.findLast(({ position }) => log.distance(position, range.to) >= 0)?.time.toISOString() ?? "";
    const sealing = { id: key.id, secret: Buffer.from(key.secret, "base64") };
    for (let sequence = next; ; sequence += 1) {
      const sealed = sealLog(bytes, { service, term, sequence, ...range, time }, sealing, newLogSecrets());
      const size = sealed.length;
      try {
        await store.put(logObject({ service, term }, sequence), sealed, signal);
        return { sequence, to: range.to, size };
      } catch (error) {
        if (!(error instanceof ObjectDiffers)) throw error;
        const to = await storedEnd(sequence, range.from, signal);
        if (to !== undefined) return { sequence, to, size };
        // An earlier archive may have stored objects that were never recorded.
        if (!isFirst) throw new LogRemoved(`log ${term}/${sequence} exists but does not continue from ${range.from}`);
      }
    }
  }

  function fields(): ReportFields {
    if (state === undefined) return { archiveId, term };
    const { fromTimeMs, durableTimeMs, earlier = [], settings: _, ...rest } = state;
    return {
      ...rest,
      fromTime: fromTimeMs,
      ...(durableTimeMs > 0 && { durableTime: durableTimeMs }),
      earlier: earlier.map((run) => `${run.term} ${run.firstSequence} ${run.lastSequence} ${run.toTimeMs ?? 0}`),
    };
  }

  return {
    get position() {
      return state && { branch: state.branch, position: state.durablePosition };
    },
    get durableTimeMs() {
      return state?.durableTimeMs ?? 0;
    },
    setLimit(bytes) {
      waitingLimitBytes = bytes;
    },
    setKey(next) {
      key = next;
      keys.set(next.id, Buffer.from(next.secret, "base64"));
    },
    async store(pieces, signal) {
      const [first] = pieces;
      const last = pieces.at(-1);
      if (first === undefined || last === undefined) throw new Error("the buffer is empty");
      const current = state ?? firstState(first);
      let { firstSequence, lastSequence, storedBytes, durablePosition } = current;
      const settings = engineSettings
        ? settingsWith(current.settings ?? [], durablePosition, engineSettings)
        : current.settings;
      const withSettings = settings && { settings };
      let bytes = Buffer.concat(pieces.map((piece) => piece.bytes));
      // Mostly one object; several if one already exists with less log.
      while (log.distance(durablePosition, last.to) > 0) {
        const skip = log.distance(first.from, durablePosition);
        bytes = skip > 0 ? Buffer.concat(pieces.map((piece) => piece.bytes)).subarray(skip) : bytes;
        const range = { branch: first.branch, from: durablePosition, to: last.to, ...withSettings };
        const isFirst = state === undefined && lastSequence < firstSequence;
        const stored = await put(lastSequence + 1, isFirst, bytes, range, signal);
        if (isFirst) firstSequence = stored.sequence;
        lastSequence = stored.sequence;
        durablePosition = stored.to;
        storedBytes += stored.size;
      }
      const commit = commits.findLast(({ position }) => log.distance(position, durablePosition) >= 0);
      if (commit !== undefined) commits = commits.slice(commits.indexOf(commit));
      const durableTimeMs = commit?.time.getTime() ?? current.durableTimeMs;
      const { branch } = first;
      const reached = { branch, firstSequence, lastSequence, durablePosition, storedBytes, durableTimeMs };
      state = { ...current, ...reached, ...withSettings };
      await writeArchiveState(data, state);
      // An engine that does not respond saves the state with the next object.
      await log.saveArchiveState(instance, durablePosition, JSON.stringify(state), signal).catch(() => undefined);
      prefetchUrls(lastSequence, signal);
      return durablePosition;
    },
    async recordCommit(signal) {
      // An engine that does not respond may still have written log.
      const commit = await log.commit(instance, signal).catch(() => undefined);
      if (commit !== undefined) commits = [...commits.slice(-100), commit];
      return commit?.position;
    },
    async recordSettings(signal) {
      const settings = await log.settings(instance, signal).catch(() => undefined);
      engineSettings = settings ?? engineSettings;
      return settings !== undefined;
    },
    waitingBytes: (end) =>
      state === undefined || end === "" ? 0 : Math.max(0, log.distance(state.durablePosition, end)),
    reportOf: (name, reason = "") => ({ ...fields(), state: name, reason }),
    sendReport: (name, reason = "", waitingBytes = 0) =>
      link.report({ ...fields(), state: name, reason, waitingBytes, waitingLimitBytes }),
  };
}
