import { LogRemoved, type LogPiece, type LogPosition, type LogStream } from "../../backup-facet.ts";
import type { Instance } from "../../instance.ts";
import { platform } from "../layout.ts";
import { type RequiredSettings, requiredSettingNames } from "../required-settings.ts";
import { walsenderClient } from "../platform-client.ts";
import { messageOf, type Session, withSession } from "../session.ts";
import { archiveSlot } from "./archive-state.ts";
import { parseLsn, formatLsn, segmentBytes } from "./lsn.ts";
import { spansOf, type TimelineSpan } from "./timelines.ts";

const slot = archiveSlot;
/** Buffered bytes from which on the socket is paused. */
const maxBufferedBytes = 16 << 20;
/**
 * Maximum pause. A walsender that waits for its receiver does not react to termination. A checkpoint that has to remove
 * log before the slot's position waits for the walsender, so the engine would retain all log during a longer pause.
 */
const maxPauseMs = 10_000;
const statusIntervalMs = 5_000;
/** PostgreSQL's epoch, 2000-01-01, in milliseconds since 1970. */
const epochMs = 946_684_800_000;

type Client = ReturnType<typeof walsenderClient>;
/** Missing in the type declarations of pg. */
type CopyConnection = Client["connection"] & { sendCopyFromChunk(chunk: Buffer): void };

/**
 * Streams WAL over the replication protocol with the archive's physical slot, from a position on through all later
 * timelines (PostgreSQL manual, "Streaming Replication Protocol"). Without a position it begins with a full segment.
 */
export function followLog(instance: Instance, from: LogPosition | undefined, signal: AbortSignal): LogStream {
  let end = "";
  let durable = from === undefined ? 0n : parseLsn(from.position);
  let client: Client | undefined;

  function sendStatus(): void {
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
    const walsender = walsenderClient(instance);
    client = walsender;
    const stream = createReceiver(walsender, {
      onEnd: (position) => void (end = position),
      onStatusRequested: sendStatus,
    });
    const abort = () => walsender.connection.stream.destroy();
    signal.addEventListener("abort", abort, { once: true });
    const statusTimer = setInterval(sendStatus, statusIntervalMs);
    try {
      await walsender.connect();
      const command = `START_REPLICATION SLOT "${slot}" PHYSICAL ${formatLsn(start)} TIMELINE ${timeline}`;
      // The query ends when the stream does.
      walsender.query(command).then(stream.ended, (error: unknown) => stream.ended(classified(error)));
      for await (const piece of stream.pieces(timeline, start)) {
        yield piece;
        // The engine sends no log of a timeline after the timeline's end.
        if (to !== undefined && parseLsn(piece.to) >= to) return;
      }
    } finally {
      clearInterval(statusTimer);
      signal.removeEventListener("abort", abort);
      stream.ended();
      client = undefined;
      walsender.connection.stream.destroy();
    }
  }

  return {
    pieces: pieces(),
    get end() {
      return end;
    },
    confirmDurable(position) {
      durable = parseLsn(position);
      sendStatus();
    },
  };
}

/** Start of the stream: the given position, or the segment that the slot retains. */
async function prepareSlot(instance: Instance, from: LogPosition | undefined, signal: AbortSignal): Promise<bigint> {
  return withSession(instance, signal, async (session) => {
    const slotSql = `SELECT restart_lsn::text AS start, wal_status AS status FROM pg_replication_slots WHERE slot_name = '${slot}'`;
    let [found] = await session.rows<{ start: string | null; status: string | null }>(slotSql);
    if (from !== undefined) {
      // A lost or missing slot retains nothing. The next bytes may still exist; the stream reports if they do not.
      if (found?.status === "lost") {
        throw new LogRemoved("The engine had to remove log that was not archived: the limit of its slot was reached.");
      }
      if (found === undefined) await session.rows(`SELECT pg_create_physical_replication_slot('${slot}', true)`);
      return parseLsn(from.position);
    }
    if (found?.status === "lost" || found?.start === null) {
      await session.rows(`SELECT pg_drop_replication_slot('${slot}')`);
      found = undefined;
    }
    if (found === undefined) {
      await session.rows(`SELECT pg_create_physical_replication_slot('${slot}', true)`);
      [found] = await session.rows<{ start: string; status: string }>(slotSql);
    }
    const start = parseLsn(found?.start ?? "");
    return start - (start % segmentBytes);
  });
}

function classified(error: unknown): unknown {
  const message = messageOf(error);
  return /has already been removed|is not in this server's history|can no longer get changes|invalidated/.test(message)
    ? new LogRemoved(message, { cause: error })
    : error;
}

interface Receiver {
  pieces(branch: string, from: bigint): AsyncGenerator<LogPiece>;
  ended(error?: unknown): void;
}

/**
 * Buffers messages, and pauses the socket while the buffer is full. If a pause lasts too long, the stream ends after
 * the buffered pieces.
 */
function createReceiver(
  client: Client,
  { onEnd, onStatusRequested }: { onEnd(position: string): void; onStatusRequested(): void },
): Receiver {
  const buffered: { readonly start: bigint; readonly bytes: Buffer }[] = [];
  let bufferedBytes = 0;
  let over: { readonly error: unknown } | undefined;
  let pauseTimer: NodeJS.Timeout | undefined;
  let changed = Promise.withResolvers<void>();
  const { connection } = client;

  function ended(error?: unknown): void {
    clearTimeout(pauseTimer);
    over ??= { error };
    changed.resolve();
  }

  function pause(): void {
    if (pauseTimer !== undefined || over !== undefined) return;
    connection.stream.pause();
    pauseTimer = setTimeout(() => {
      ended(new Error("the log was not read for too long"));
      connection.stream.destroy();
    }, maxPauseMs);
  }

  function resume(): void {
    clearTimeout(pauseTimer);
    pauseTimer = undefined;
    connection.stream.resume();
  }

  client.on("error", ended);
  client.on("end", () => ended(new Error("the engine ended the stream")));
  connection.on("copyData", ({ chunk }: { chunk: Buffer }) => {
    if (chunk[0] === 0x6b) {
      onEnd(formatLsn(chunk.readBigUInt64BE(1)));
      if (chunk[17] === 1) onStatusRequested();
    }
    if (chunk[0] !== 0x77) return;
    const start = chunk.readBigUInt64BE(1);
    // The chunk is a view of memory that is reused.
    const bytes = Buffer.from(chunk.subarray(25));
    onEnd(formatLsn(chunk.readBigUInt64BE(9)));
    buffered.push({ start, bytes });
    bufferedBytes += bytes.length;
    if (bufferedBytes > maxBufferedBytes) pause();
    changed.resolve();
  });

  return {
    ended,
    async *pieces(branch, from) {
      let at = from;
      for (;;) {
        changed = Promise.withResolvers();
        const next = buffered.shift();
        if (next === undefined) {
          if (over !== undefined) throw over.error ?? new Error("the engine ended the stream");
          await changed.promise;
          continue;
        }
        bufferedBytes -= next.bytes.length;
        if (bufferedBytes <= maxBufferedBytes / 2) resume();
        if (next.start !== at)
          throw new Error(`received log starts at ${formatLsn(next.start)}, not at ${formatLsn(at)}`);
        at += BigInt(next.bytes.length);
        yield { branch, from: formatLsn(next.start), to: formatLsn(at), bytes: next.bytes };
      }
    },
  };
}

const commitTimeoutMs = 2_000;

/**
 * Commits a heartbeat. The heartbeat's time is before its commit, whose record is flushed when the next statement
 * begins. The engine sends no log after the flushed position until something else is written.
 */
export async function commit(instance: Instance, signal: AbortSignal): Promise<{ time: Date; position: string }> {
  const work = async (session: Session) => {
    const [heartbeat] = await session.rows<{ at: Date }>(
      `UPDATE ${platform}.heartbeat SET at = clock_timestamp() RETURNING at`,
    );
    const [log] = await session.rows<{ position: string }>("SELECT pg_current_wal_flush_lsn()::text AS position");
    if (heartbeat === undefined || log === undefined) throw new Error("the engine recorded no heartbeat");
    return { time: heartbeat.at, position: log.position };
  };
  // Only this primary's log matters here: do not wait for replicas.
  return withSession(instance, signal, work, { statementMs: commitTimeoutMs, isLocal: true });
}

/** Settings of the engine that a replay of its log needs at least as much of. */
export async function readSettings(instance: Instance, signal: AbortSignal): Promise<RequiredSettings> {
  const rows = await withSession(instance, signal, (session) =>
    session.rows<{ name: string; value: number }>(
      "SELECT name, setting::int AS value FROM pg_settings WHERE name = ANY ($1::text[])",
      [requiredSettingNames],
    ),
  );
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
}

/** `max_slot_wal_keep_size` is in megabytes; -1 means no limit. */
export async function retention(instance: Instance, signal: AbortSignal): Promise<{ end: string; limitBytes: number }> {
  const [row] = await withSession(instance, signal, (session) =>
    session.rows<{ end: string; limit_bytes: string }>(
      `SELECT pg_current_wal_lsn()::text AS end, pg_size_bytes(current_setting('max_slot_wal_keep_size')) AS limit_bytes`,
    ),
  );
  if (row === undefined) throw new Error("the engine did not report the end of its log");
  return { end: row.end, limitBytes: Math.max(0, Number(row.limit_bytes)) };
}

export function distance(from: string, to: string): number {
  return Number(parseLsn(to) - parseLsn(from));
}
