import { LogGone, type LogPiece, type LogPosition, type LogStream } from "../../backup-facet.ts";
import type { Instance } from "../../instance.ts";
import { platform } from "../layout.ts";
import { type RequiredSettings, requiredNames } from "../required-settings.ts";
import { walsenderClient } from "../platform-client.ts";
import { messageOf, type Session, withSession } from "../session.ts";
import { archiveSlot } from "./archive-note.ts";
import { spansOf } from "./lineage.ts";
import { parsePosition, positionText, segmentBytes } from "./position.ts";
import type { TimelineSpan } from "./timelines.ts";

const slot = archiveSlot;
/** More than this is not read ahead of whoever takes it. */
const mostWaitingBytes = 16 << 20;
/**
 * A sender that waits for its receiver does not end when it is told to. A checkpoint that is to remove the log behind the slot
 * waits for that, and keeps all log meanwhile.
 */
const longestPauseMs = 10_000;
const statusEveryMs = 5_000;
/** PostgreSQL counts from 2000-01-01. */
const epochMs = 946_684_800_000;

type Client = ReturnType<typeof walsenderClient>;
/** The types of pg leave it out. */
type CopyConnection = Client["connection"] & { sendCopyFromChunk(chunk: Buffer): void };

/** WAL by the replication protocol and a physical slot of ours, through all timelines from there on. It begins with a whole segment. */
export function followLog(instance: Instance, from: LogPosition | undefined, signal: AbortSignal): LogStream {
  let end = "";
  let durable = from === undefined ? 0n : parsePosition(from.position);
  let client: Client | undefined;

  function tellStatus(): void {
    const status = Buffer.alloc(34);
    status.write("r", 0, "latin1");
    for (const at of [1, 9, 17]) status.writeBigUInt64BE(durable, at);
    status.writeBigInt64BE(BigInt(Date.now() - epochMs) * 1_000n, 25);
    (client?.connection as CopyConnection | undefined)?.sendCopyFromChunk(status);
  }

  async function* pieces(): AsyncGenerator<LogPiece> {
    const start = await prepareSlot(instance, from, signal);
    if (durable === 0n) durable = start;
    for (const span of await spansOf(instance, from, start, signal)) yield* piecesOf(span);
  }

  async function* piecesOf({ timeline, from: start, to }: TimelineSpan): AsyncGenerator<LogPiece> {
    signal.throwIfAborted();
    const own = walsenderClient(instance);
    client = own;
    const stream = createReceiver(own, {
      onEnd: (position) => void (end = position),
      onStatusWanted: tellStatus,
    });
    const abort = () => own.connection.stream.destroy();
    signal.addEventListener("abort", abort, { once: true });
    const telling = setInterval(tellStatus, statusEveryMs);
    try {
      await own.connect();
      const begin = `START_REPLICATION SLOT "${slot}" PHYSICAL ${positionText(start)} TIMELINE ${timeline}`;
      // It ends when the stream does.
      own.query(begin).then(stream.ended, (error: unknown) => stream.ended(judged(error)));
      for await (const piece of stream.pieces(timeline, start)) {
        yield piece;
        // The engine sends nothing of a timeline behind where it left it.
        if (to !== undefined && parsePosition(piece.to) >= to) return;
      }
    } finally {
      clearInterval(telling);
      signal.removeEventListener("abort", abort);
      stream.ended();
      client = undefined;
      own.connection.stream.destroy();
    }
  }

  return {
    pieces: pieces(),
    get end() {
      return end;
    },
    durable(position) {
      durable = parsePosition(position);
      tellStatus();
    },
  };
}

/** Where to begin: exactly where it ended, or with the segment that the slot keeps. */
async function prepareSlot(instance: Instance, from: LogPosition | undefined, signal: AbortSignal): Promise<bigint> {
  return withSession(instance, signal, async (session) => {
    const look = `SELECT restart_lsn::text AS kept, wal_status AS status FROM pg_replication_slots WHERE slot_name = '${slot}'`;
    let [found] = await session.rows<{ kept: string | null; status: string | null }>(look);
    if (from !== undefined) {
      // A slot that is lost, or gone, keeps nothing: what is next may be there all the same, and the stream says so.
      if (found?.status === "lost") {
        throw new LogGone("the engine had to remove log that was not archived: the limit of its slot was reached");
      }
      if (found === undefined) await session.rows(`SELECT pg_create_physical_replication_slot('${slot}', true)`);
      return parsePosition(from.position);
    }
    if (found?.status === "lost" || found?.kept === null) {
      await session.rows(`SELECT pg_drop_replication_slot('${slot}')`);
      found = undefined;
    }
    if (found === undefined) {
      await session.rows(`SELECT pg_create_physical_replication_slot('${slot}', true)`);
      [found] = await session.rows<{ kept: string; status: string }>(look);
    }
    const kept = parsePosition(found?.kept ?? "");
    return kept - (kept % segmentBytes);
  });
}

function judged(error: unknown): unknown {
  const message = messageOf(error);
  return /has already been removed|is not in this server's history|can no longer get changes|invalidated/.test(message)
    ? new LogGone(message, { cause: error })
    : error;
}

interface Receiver {
  pieces(branch: string, from: bigint): AsyncGenerator<LogPiece>;
  ended(error?: unknown): void;
}

/** Takes messages as they come, and reads no more while too much waits; when that lasts, it ends after what it has. */
function createReceiver(
  client: Client,
  { onEnd, onStatusWanted }: { onEnd(position: string): void; onStatusWanted(): void },
): Receiver {
  const waiting: { readonly start: bigint; readonly bytes: Buffer }[] = [];
  let waitingBytes = 0;
  let over: { readonly error: unknown } | undefined;
  let pausing: NodeJS.Timeout | undefined;
  let news = Promise.withResolvers<void>();
  const { connection } = client;

  function ended(error?: unknown): void {
    clearTimeout(pausing);
    over ??= { error };
    news.resolve();
  }

  function pause(): void {
    if (pausing !== undefined || over !== undefined) return;
    connection.stream.pause();
    pausing = setTimeout(() => {
      ended(new Error("the log was not taken for too long"));
      connection.stream.destroy();
    }, longestPauseMs);
  }

  function resume(): void {
    clearTimeout(pausing);
    pausing = undefined;
    connection.stream.resume();
  }

  client.on("error", ended);
  client.on("end", () => ended(new Error("the engine ended the stream")));
  connection.on("copyData", ({ chunk }: { chunk: Buffer }) => {
    if (chunk[0] === 0x6b) {
      onEnd(positionText(chunk.readBigUInt64BE(1)));
      if (chunk[17] === 1) onStatusWanted();
    }
    if (chunk[0] !== 0x77) return;
    const start = chunk.readBigUInt64BE(1);
    // The chunk is a window on memory that is used again.
    const bytes = Buffer.from(chunk.subarray(25));
    onEnd(positionText(chunk.readBigUInt64BE(9)));
    waiting.push({ start, bytes });
    waitingBytes += bytes.length;
    if (waitingBytes > mostWaitingBytes) pause();
    news.resolve();
  });

  return {
    ended,
    async *pieces(branch, from) {
      let at = from;
      for (;;) {
        news = Promise.withResolvers();
        const next = waiting.shift();
        if (next === undefined) {
          if (over !== undefined) throw over.error ?? new Error("the engine ended the stream");
          await news.promise;
          continue;
        }
        waitingBytes -= next.bytes.length;
        if (waitingBytes <= mostWaitingBytes / 2) resume();
        if (next.start !== at)
          throw new Error(`log came from ${positionText(next.start)}, not from ${positionText(at)}`);
        at += BigInt(next.bytes.length);
        yield { branch, from: positionText(next.start), to: positionText(at), bytes: next.bytes };
      }
    },
  };
}

const commitMs = 2_000;

/**
 * The heartbeat's time is before its commit, whose record is flushed when the next statement begins. Nothing behind what is flushed is
 * sent before something else is written.
 */
export async function commit(instance: Instance, signal: AbortSignal): Promise<{ time: Date; position: string }> {
  const work = async (session: Session) => {
    const [beat] = await session.rows<{ at: Date }>(
      `UPDATE ${platform}.heartbeat SET at = clock_timestamp() RETURNING at`,
    );
    const [log] = await session.rows<{ position: string }>("SELECT pg_current_wal_flush_lsn()::text AS position");
    if (beat === undefined || log === undefined) throw new Error("there is no heartbeat");
    return { time: beat.at, position: log.position };
  };
  // The log of this primary is what counts, whichever replicas have it.
  return withSession(instance, signal, work, { statementMs: commitMs, isLocal: true });
}

/** Settings of the engine that replay of its log takes at least as much of. */
export async function settings(instance: Instance, signal: AbortSignal): Promise<RequiredSettings> {
  const rows = await withSession(instance, signal, (session) =>
    session.rows<{ name: string; value: number }>(
      "SELECT name, setting::int AS value FROM pg_settings WHERE name = ANY ($1::text[])",
      [requiredNames],
    ),
  );
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
}

/** The slot's limit is a setting of megabytes; -1 is none. */
export async function kept(instance: Instance, signal: AbortSignal): Promise<{ end: string; limitBytes: number }> {
  const [row] = await withSession(instance, signal, (session) =>
    session.rows<{ end: string; limit_bytes: string }>(
      `SELECT pg_current_wal_lsn()::text AS end, pg_size_bytes(current_setting('max_slot_wal_keep_size')) AS limit_bytes`,
    ),
  );
  if (row === undefined) throw new Error("the engine did not say where its log ends");
  return { end: row.end, limitBytes: Math.max(0, Number(row.limit_bytes)) };
}

export function distance(from: string, to: string): number {
  return Number(parsePosition(to) - parsePosition(from));
}
