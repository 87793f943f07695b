import { setTimeout as sleep } from "node:timers/promises";
import { type LogFacet, LogGone, type LogPiece, type LogStream } from "../engines/backup-facet.ts";
import { createArchiveWriter } from "./archive-writer.ts";
import { type ArchivePace, createArchivePace } from "./archive-pace.ts";
import { adoptArchive } from "./adopted-archive.ts";
import type { ArchiveState } from "./archive-state.ts";
import type { ArchiveJob, Report } from "./job.ts";
import { JobFailed } from "./job-failed.ts";
import type { JobSurroundings } from "./surroundings.ts";

/** A piece is stored at once when it is so large, */
const fullBytes = 8 << 20;
const lookEveryMs = 500;
/** What the engine has written it has sent within this time. */
const streamingMs = 500;
const streamLookMs = 10;
/** Of an engine that sends more than this, the next object follows soon. */
const steadyBytes = 1 << 20;
const tellEveryMs = 2_000;
/** The stream tells no more while what it brought waits: then the engine is asked. */
const askEveryMs = 10_000;
const reconnectMs = 1_000;
/** What is left when it is told to end is stored within this time, or another time. */
const lastWordsMs = 3_000;
/** An engine that does not commit within this time may be why it is to stop. */
const lastCommitMs = 500;
const toldToEnd = "It was told to end.";

/**
 * Follows the engine's log as long as it is wanted, through restarts of the engine and outages of the store. The engine is told
 * of what is durable in the store, and of nothing else: it keeps the rest.
 */
export async function runArchive(job: ArchiveJob, deps: JobSurroundings): Promise<Report> {
  const { facet, instance, link, signal } = deps;
  const log = facet.log;
  if (log === undefined) throw new JobFailed("source_failed", `${instance.spec.engine} has no log to archive`);
  const renewed = { key: job.key };
  link.onKey((key) => void (renewed.key = key));
  let before: ArchiveState | undefined;
  try {
    before = await adoptArchive(job, deps, log);
  } catch (error) {
    if (!(error instanceof LogGone) && !signal.aborted) throw error;
    const { archiveId, term } = job;
    const [state, reason] = error instanceof LogGone ? ["gap", error.message] : ["starting", toldToEnd];
    return { archiveId, term, state, reason };
  }
  const pace = createArchivePace(job.idleMs, deps.now);
  const writer = createArchiveWriter({ ...job, ...renewed }, deps, log, before);
  link.onKey((key) => writer.setKey(key));
  // A base waits for an archive that begins, and is of use once the log reaches behind it.
  const haste = { untilMs: deps.now() };
  link.onBase(() => void (haste.untilMs = deps.now()));
  writer.tell("starting");
  while (!signal.aborted) {
    try {
      await followOnce(log, writer.position, { deps, writer, pace, haste });
    } catch (error) {
      if (error instanceof LogGone) return writer.report("gap", error.message);
      if (signal.aborted) break;
      if (error instanceof JobFailed) throw error;
      writer.tell("starting", error instanceof Error ? error.message : String(error));
      await sleep(reconnectMs, undefined, { signal }).catch(() => undefined);
    }
  }
  return writer.report("starting", toldToEnd);
}

interface Following {
  readonly deps: JobSurroundings;
  readonly writer: ReturnType<typeof createArchiveWriter>;
  readonly pace: ArchivePace;
  /** As long as what is durable is not of this moment, nothing waits for more to come. */
  readonly haste: { readonly untilMs: number };
}

async function followOnce(log: LogFacet, from: Parameters<LogFacet["follow"]>[1], following: Following): Promise<void> {
  const { deps, writer, pace, haste } = following;
  const { instance, signal, now, trouble } = deps;
  const broken = new AbortController();
  const stream: LogStream = log.follow(instance, from, broken.signal);
  const taken: LogPiece[] = [];
  let takenBytes = 0;
  let takenTo = "";
  let oldestMs = 0;
  let failure: unknown;
  let isOver = false;
  let room = Promise.withResolvers<void>();

  const taking = (async () => {
    for await (const piece of stream.pieces) {
      if (takenBytes === 0) oldestMs = now();
      taken.push(piece);
      takenBytes += piece.bytes.length;
      takenTo = piece.to;
      while (takenBytes >= 2 * fullBytes && !broken.signal.aborted) {
        room = Promise.withResolvers();
        await room.promise;
      }
    }
  })()
    .catch((error: unknown) => void (failure = error))
    .finally(() => void (isOver = true));

  /** The pieces that make one object, which is of one branch. */
  function cut(): LogPiece[] {
    const cutOff: LogPiece[] = [];
    let bytes = 0;
    const branch = taken[0]?.branch;
    while (taken[0] !== undefined && taken[0].branch === branch && bytes < fullBytes) {
      const piece = taken.shift() as LogPiece;
      cutOff.push(piece);
      bytes += piece.bytes.length;
    }
    takenBytes -= bytes;
    oldestMs = now();
    room.resolve();
    return cutOff;
  }

  let known = { end: "", limitBytes: 0 };
  function ask(): void {
    log
      .kept(instance, signal)
      .then((kept) => {
        known = kept;
        writer.setLimit(known.limitBytes);
      })
      // An engine that answers nobody is asked again.
      .catch(() => undefined);
  }
  ask();
  let askedAt = now();
  function tell(): void {
    if (now() - askedAt >= askEveryMs && trouble() !== undefined) {
      askedAt = now();
      ask();
    }
    const waitingBytes = Math.max(writer.waitingBytes(stream.end), writer.waitingBytes(known.end));
    writer.tell(trouble() === undefined ? "following" : "waiting", trouble() ?? "", waitingBytes);
  }
  // Also while the store does not answer: then more and more waits.
  const telling = setInterval(tell, tellEveryMs);

  async function untilTaken(position: string | undefined, until: AbortSignal): Promise<void> {
    const untilMs = now() + streamingMs;
    const isTaken = () => position === undefined || (takenTo !== "" && log.distance(position, takenTo) >= 0);
    while (!isTaken() && !isOver && takenBytes < steadyBytes && now() < untilMs && !until.aborted)
      await sleep(streamLookMs, undefined, { signal: until }).catch(() => undefined);
  }

  const isHasty = () => writer.durableTimeMs < haste.untilMs;
  const isDue = () => {
    const waitsMs = isHasty() ? 0 : pace.waitsMs(takenBytes);
    return takenBytes >= fullBytes || (takenBytes > 0 && now() - oldestMs >= waitsMs);
  };

  // An engine that was started again ends the stream: all that comes by one is written under the same settings.
  let hasSettings = false;
  try {
    while (!isOver && !signal.aborted) {
      tell();
      if (!isDue()) {
        await sleep(lookEveryMs, undefined, { signal }).catch(() => undefined);
        continue;
      }
      hasSettings ||= await writer.noteSettings(signal);
      // What is stored now reaches a commit of now: the newest restorable moment is behind all that was written before.
      await untilTaken(await writer.noteCommit(signal), signal);
      pace.stores(takenBytes);
      stream.durable(await writer.store(cut(), signal));
    }
    if (signal.aborted) {
      const last = AbortSignal.timeout(lastWordsMs);
      if (!isOver) await untilTaken(await writer.noteCommit(AbortSignal.timeout(lastCommitMs)), last);
      while (takenBytes > 0) await writer.store(cut(), last);
    }
  } finally {
    clearInterval(telling);
    broken.abort();
    room.resolve();
    await taking;
  }
  if (failure !== undefined && !signal.aborted) throw failure;
}
