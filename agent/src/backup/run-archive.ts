import { setTimeout as sleep } from "node:timers/promises";
import { type LogFacet, LogRemoved, type LogPiece, type LogStream } from "../engines/backup-facet.ts";
import { createArchiveWriter } from "./archive-writer.ts";
import { adoptArchive } from "./archive-adoption.ts";
import type { ArchiveState } from "./archive-state.ts";
import type { ArchiveJob, Report } from "./job.ts";
import { JobFailed } from "./job-failed.ts";
import type { JobContext } from "./job-context.ts";

/** Log of this size is stored without waiting for more. */
const fullBytes = 8 << 20;
const pollIntervalMs = 500;
/** Time in which the engine streams what it has written. */
const streamingMs = 500;
const streamPollMs = 10;
/** Size at which an object is stored although the log has more: under such a load the next object follows early. */
const steadyBytes = 1 << 20;
const reportIntervalMs = 2_000;
/** Interval of queries for the engine's end of log while received log waits: the stream reports no new end then. */
const queryIntervalMs = 10_000;
const reconnectMs = 1_000;
/** Time limit to store the remaining log after a cancellation; the next run stores the rest. */
const drainWithinMs = 3_000;
/** Time limit of the last commit: the engine may be unresponsive, which may be the reason for the stop. */
const lastCommitMs = 500;
const canceledMessage = "It was canceled.";

/**
 * Streams the engine's log into the store until it is stopped, across restarts of the engine and outages of the store.
 * Only positions durable in the store are confirmed to the engine, which retains the rest.
 */
export async function runArchive(job: ArchiveJob, deps: JobContext): Promise<Report> {
  const { facet, instance, link, signal } = deps;
  const log = facet.log;
  if (log === undefined) throw new JobFailed("source_failed", `${instance.spec.engine} has no log to archive.`);
  const latest = { key: job.key };
  link.onKey((key) => void (latest.key = key));
  let adopted: ArchiveState | undefined;
  try {
    adopted = await adoptArchive(job, deps, log);
  } catch (error) {
    if (!(error instanceof LogRemoved) && !signal.aborted) throw error;
    const { archiveId, term } = job;
    const [state, reason] = error instanceof LogRemoved ? ["gap", error.message] : ["starting", canceledMessage];
    return { archiveId, term, state, reason };
  }
  const schedule = createArchiveSchedule(job.idleMs, deps.now);
  const writer = createArchiveWriter({ ...job, ...latest }, deps, log, adopted);
  link.onKey((key) => writer.setKey(key));
  // A base backup can be restored only once the archive reaches beyond it.
  const urgency = { untilMs: deps.now() };
  link.onBase(() => void (urgency.untilMs = deps.now()));
  writer.sendReport("starting");
  while (!signal.aborted) {
    try {
      await followOnce(log, writer.position, { deps, writer, schedule, urgency });
    } catch (error) {
      if (error instanceof LogRemoved) return writer.reportOf("gap", error.message);
      if (signal.aborted) break;
      if (error instanceof JobFailed) throw error;
      writer.sendReport("starting", error instanceof Error ? error.message : String(error));
      await sleep(reconnectMs, undefined, { signal }).catch(() => undefined);
    }
  }
  return writer.reportOf("starting", canceledMessage);
}

interface Following {
  readonly deps: JobContext;
  readonly writer: ReturnType<typeof createArchiveWriter>;
  readonly schedule: ArchiveSchedule;
  /** Log is stored without a delay until the log up to this time is durable. */
  readonly urgency: { readonly untilMs: number };
}

async function followOnce(log: LogFacet, from: Parameters<LogFacet["follow"]>[1], following: Following): Promise<void> {
  const { deps, writer, schedule, urgency } = following;
  const { instance, signal, now, storeFailure } = deps;
  const broken = new AbortController();
  const stream: LogStream = log.follow(instance, from, broken.signal);
  const buffered: LogPiece[] = [];
  let bufferedBytes = 0;
  let receivedTo = "";
  let oldestMs = 0;
  let failure: unknown;
  let isFinished = false;
  let capacity = Promise.withResolvers<void>();

  const receiving = (async () => {
    for await (const piece of stream.pieces) {
      if (bufferedBytes === 0) oldestMs = now();
      buffered.push(piece);
      bufferedBytes += piece.bytes.length;
      receivedTo = piece.to;
      while (bufferedBytes >= 2 * fullBytes && !broken.signal.aborted) {
        capacity = Promise.withResolvers();
        await capacity.promise;
      }
    }
  })()
    .catch((error: unknown) => void (failure = error))
    .finally(() => void (isFinished = true));

  /** Takes the pieces of the next object, which all belong to one branch. */
  function cut(): LogPiece[] {
    const pieces: LogPiece[] = [];
    let bytes = 0;
    const branch = buffered[0]?.branch;
    while (buffered[0] !== undefined && buffered[0].branch === branch && bytes < fullBytes) {
      const piece = buffered.shift() as LogPiece;
      pieces.push(piece);
      bytes += piece.bytes.length;
    }
    bufferedBytes -= bytes;
    oldestMs = now();
    capacity.resolve();
    return pieces;
  }

  let retained = { end: "", limitBytes: 0 };
  function queryRetained(): void {
    log
      .retention(instance, signal)
      .then((found) => {
        retained = found;
        writer.setLimit(retained.limitBytes);
      })
      // An engine that does not respond is queried again.
      .catch(() => undefined);
  }
  queryRetained();
  let queriedAt = now();
  function report(): void {
    if (now() - queriedAt >= queryIntervalMs && storeFailure() !== undefined) {
      queriedAt = now();
      queryRetained();
    }
    const waitingBytes = Math.max(writer.waitingBytes(stream.end), writer.waitingBytes(retained.end));
    writer.sendReport(storeFailure() === undefined ? "following" : "waiting", storeFailure() ?? "", waitingBytes);
  }
  // Reports also while the store does not respond and the backlog grows.
  const reporting = setInterval(report, reportIntervalMs);

  async function untilReceived(position: string | undefined, until: AbortSignal): Promise<void> {
    const untilMs = now() + streamingMs;
    const isReceived = () => position === undefined || (receivedTo !== "" && log.distance(position, receivedTo) >= 0);
    while (!isReceived() && !isFinished && bufferedBytes < steadyBytes && now() < untilMs && !until.aborted)
      await sleep(streamPollMs, undefined, { signal: until }).catch(() => undefined);
  }

  const isUrgent = () => writer.durableTimeMs < urgency.untilMs;
  const isDue = () => {
    const waitsMs = isUrgent() ? 0 : schedule.delayMs(bufferedBytes);
    return bufferedBytes >= fullBytes || (bufferedBytes > 0 && now() - oldestMs >= waitsMs);
  };

  // A restart of the engine ends the stream, so one stream has one set of settings.
  let hasSettings = false;
  try {
    while (!isFinished && !signal.aborted) {
      report();
      if (!isDue()) {
        await sleep(pollIntervalMs, undefined, { signal }).catch(() => undefined);
        continue;
      }
      hasSettings ||= await writer.recordSettings(signal);
      // The object reaches a commit of this moment, so the newest restorable time covers all earlier writes.
      await untilReceived(await writer.recordCommit(signal), signal);
      schedule.stored(bufferedBytes);
      stream.confirmDurable(await writer.store(cut(), signal));
    }
    if (signal.aborted) {
      const last = AbortSignal.timeout(drainWithinMs);
      if (!isFinished) await untilReceived(await writer.recordCommit(AbortSignal.timeout(lastCommitMs)), last);
      while (bufferedBytes > 0) await writer.store(cut(), last);
    }
  } finally {
    clearInterval(reporting);
    broken.abort();
    capacity.resolve();
    await receiving;
  }
  if (failure !== undefined && !signal.aborted) throw failure;
}

/** Decides how long log is buffered before it is stored as an object. */
export interface ArchiveSchedule {
  /** Longest wait in milliseconds of the first of this number of buffered bytes. */
  delayMs(bytes: number): number;
  /** Records that these bytes are stored now. */
  stored(bytes: number): void;
}

/** Size of buffered log from which on it is stored within `busyMs`. */
const busyBytes = 64 << 10;
const busyMs = 2_000;
/** An idle engine writes less than this within the longest wait, except for full pages after a checkpoint. */
const activeBytes = 4 << 10;
const activeMs = 5_000;
const maxCredits = 10;

/**
 * Log waits at most `idleMs`, and only seconds after a write to an idle engine, so that a restore reaches the last
 * write of a short burst. A small object costs one credit, and about one credit a minute accrues: an idle or slowly
 * written service stores no more than one object per `idleMs`.
 */
export function createArchiveSchedule(idleMs: number, now: () => number): ArchiveSchedule {
  let credits = maxCredits;
  let accruedMs = now();
  /** True if the last object ended within a burst of writes, so that the rest of the burst follows. */
  let isInBurst = false;

  function accrueCredits(): void {
    const elapsed = Math.max(0, now() - accruedMs);
    credits = Math.min(maxCredits, credits + elapsed / (idleMs + activeMs));
    accruedMs = now();
  }

  return {
    delayMs(bytes) {
      if (bytes >= busyBytes) return Math.min(busyMs, idleMs);
      accrueCredits();
      const isActive = (bytes >= activeBytes || isInBurst) && credits >= 1;
      return isActive ? Math.min(activeMs, idleMs) : idleMs;
    },
    stored(bytes) {
      accrueCredits();
      if (bytes < busyBytes) credits = Math.max(0, credits - 1);
      isInBurst = bytes >= activeBytes;
    },
  };
}
