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
import { type LogFacet, LogGone, type LogPiece, type LogPosition } from "../engines/backup-facet.ts";
import { type ArchiveState, writeArchiveState } from "./archive-state.ts";
import type { ArchiveJob, JobKey, Report, ReportFields } from "./job.ts";
import { settingsWith } from "./log-settings.ts";
import { ObjectDiffers } from "./store-client.ts";
import type { JobSurroundings } from "./surroundings.ts";

/** Puts log into the store, object by object, and knows how far it is. */
export interface ArchiveWriter {
  /** From where the log is to be followed; undefined for an archive that begins. */
  readonly position: LogPosition | undefined;
  /** Newest moment that is durable, in milliseconds since 1970; 0 while there is none. */
  readonly durableTimeMs: number;
  /** From the next object on. */
  setKey(key: JobKey): void;
  /** Resolves with the position up to which all is durable. */
  store(pieces: readonly LogPiece[], signal: AbortSignal): Promise<string>;
  /** Has the engine commit, and resolves with a position that what comes now reaches; undefined for an engine that answers nobody. */
  noteCommit(signal: AbortSignal): Promise<string | undefined>;
  /** Asks the engine for the settings that what comes now is written under. Resolves with false when it does not answer. */
  noteSettings(signal: AbortSignal): Promise<boolean>;
  waitingBytes(end: string): number;
  /** What the engine keeps at most of what is not durable. */
  setLimit(bytes: number): void;
  report(state: string, reason?: string): Report;
  tell(state: string, reason?: string, waitingBytes?: number): void;
}

const hourMs = 3_600_000;
const leastAhead = 75;
const mostAhead = 3_000;
const recentMs = 600_000;

export function createArchiveWriter(
  job: ArchiveJob,
  { instance, store, purse, link, now }: JobSurroundings,
  log: LogFacet,
  before: ArchiveState | undefined,
): ArchiveWriter {
  const { archiveId, service, term } = job;
  const { data } = instance.paths;
  let key = job.key;
  const keys = new Map([...job.earlierKeys, job.key].map(({ id, secret }) => [id, Buffer.from(secret, "base64")]));
  let state = continued(before);
  /** Moments that the log reaches at positions that are not durable yet. */
  let commits: { readonly time: Date; readonly position: string }[] = [];
  /** Of the engine that is followed; undefined before it answered. */
  let running: LogSettings["values"] | undefined;
  let recent: number[] = [];
  let waitingLimitBytes = 0;

  /** Numbers begin anew with a term; the log goes on. */
  function continued(kept: ArchiveState | undefined): ArchiveState | undefined {
    if (kept === undefined || kept.archiveId !== archiveId) return undefined;
    if (kept.term === term) return kept;
    const { term: was, firstSequence, lastSequence, durablePosition: fromPosition, earlier = [] } = kept;
    const { durableTimeMs: toTimeMs } = kept;
    const run = { term: was, firstSequence, lastSequence, ...(toTimeMs > 0 && { toTimeMs }) };
    const runs = lastSequence < firstSequence ? earlier : [...earlier, run];
    return { ...kept, term, firstSequence: 1, lastSequence: 0, fromPosition, fromTimeMs: now(), earlier: runs };
  }

  /** Behind the objects of an archive of before that has the same term. */
  function begun({ branch, from }: LogPiece): ArchiveState {
    const lastSequence = before?.term === term ? before.lastSequence : 0;
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

  /** An hour's worth of URLs, by what the last ten minutes took. */
  function holdAhead(sequence: number, signal: AbortSignal): void {
    recent = [...recent.filter((at) => at > now() - recentMs), now()];
    const count = Math.min(mostAhead, Math.max(leastAhead, Math.ceil((recent.length * hourMs) / recentMs)));
    const keys = Array.from({ length: count }, (_, i) => logObject({ service, term }, sequence + 1 + i));
    purse.fetchAhead("PUT", keys, signal);
  }

  /**
   * What is there in an object's place: of this archive, from a run whose end it did not live to note. Undefined for one that is
   * not, or does not begin where this one is to.
   */
  async function found(sequence: number, from: string, signal: AbortSignal): Promise<string | undefined> {
    const there = await store.get(logObject({ service, term }, sequence), signal);
    if (there === undefined) throw new Error("an object was there and is not");
    const bytes = await buffer(there);
    try {
      const { header } = openLog(bytes, { service, term, sequence }, (id) => keys.get(id));
      return header.from === from ? header.to : undefined;
    } catch (error) {
      if (error instanceof BackupDamaged) return undefined;
      throw error;
    }
  }

  /** With the first number from `next` on that is free, or has it already. `isFirst`: of the archive. */
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
        const to = await found(sequence, range.from, signal);
        if (to !== undefined) return { sequence, to, size };
        // An archive of the term before this one may have stored more than anybody noted.
        if (!isFirst) throw new LogGone(`log ${term}/${sequence} is there, and does not go on from ${range.from}`);
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
      if (first === undefined || last === undefined) throw new Error("there is nothing to store");
      const current = state ?? begun(first);
      let { firstSequence, lastSequence, storedBytes, durablePosition } = current;
      const settings = running ? settingsWith(current.settings ?? [], durablePosition, running) : current.settings;
      const noted = settings && { settings };
      let bytes = Buffer.concat(pieces.map((piece) => piece.bytes));
      // One object mostly; another one when the first was there already with less in it.
      while (log.distance(durablePosition, last.to) > 0) {
        const skip = log.distance(first.from, durablePosition);
        bytes = skip > 0 ? Buffer.concat(pieces.map((piece) => piece.bytes)).subarray(skip) : bytes;
        const range = { branch: first.branch, from: durablePosition, to: last.to, ...noted };
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
      state = { ...current, ...reached, ...noted };
      await writeArchiveState(data, state);
      // An engine that answers nobody has it noted with the next object.
      await log.note(instance, durablePosition, JSON.stringify(state), signal).catch(() => undefined);
      holdAhead(lastSequence, signal);
      return durablePosition;
    },
    async noteCommit(signal) {
      // An engine that answers nobody still has a log.
      const commit = await log.commit(instance, signal).catch(() => undefined);
      if (commit !== undefined) commits = [...commits.slice(-100), commit];
      return commit?.position;
    },
    async noteSettings(signal) {
      const settings = await log.settings(instance, signal).catch(() => undefined);
      running = settings ?? running;
      return settings !== undefined;
    },
    waitingBytes: (end) =>
      state === undefined || end === "" ? 0 : Math.max(0, log.distance(state.durablePosition, end)),
    report: (name, reason = "") => ({ ...fields(), state: name, reason }),
    tell: (name, reason = "", waitingBytes = 0) =>
      link.report({ ...fields(), state: name, reason, waitingBytes, waitingLimitBytes }),
  };
}
