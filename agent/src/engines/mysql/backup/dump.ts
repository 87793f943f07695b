import { setTimeout as sleep } from "node:timers/promises";
import {
  type OpenedSource,
  PlanTooSmall,
  type SourceEnd,
  type SourceOptions,
  type SourceStream,
} from "../../backup-facet.ts";
import type { Instance } from "../../instance.ts";
import { isPlatformNameSql } from "../platform-accounts.ts";
import { identifier, numberOf } from "../session.ts";
import { fileNumber, formatBranch, formatPosition } from "./binlog-position.ts";
import { sizeOf } from "../byte-connection.ts";
import { type ByteSession, byteText, openByteSession } from "./byte-session.ts";
import { chunkConditions, isLarge } from "./chunks.ts";
import { readDefinitions, readKeyRange, type SourceTable } from "./definitions.ts";
import {
  type Definitions,
  definitionsStream,
  type DumpPosition,
  endFrame,
  frameHeader,
  frameOf,
  rowsStream,
} from "./dump-format.ts";
import { mayHaveLargeRows, rowText } from "./row-text.ts";

/** Number of sessions that read rows. */
const readers = 3;
/** Target size of a frame of rows in bytes. */
const frameLength = 512 << 10;
/** Size of a row from which on it is a frame that is written in pieces, in bytes. */
const largeRowBytes = 1 << 20;
/** Maximum size of a row as text in bytes: a restore has it as one string, whose length V8 limits. */
const maxRowLength = 400 << 20;
/**
 * Maximum share of the machine's memory that a row may have: while it is read the engine has two to three copies of it,
 * and the backup's program three.
 */
const rowShare = 1 / 20;
/** Time limit for the lock of definitions (LOCK INSTANCE FOR BACKUP), in seconds. */
const definitionsSeconds = 10;
/** Time limit for the read lock, in seconds. Short: other sessions' writes wait while the lock waits. */
const rowsSeconds = 2;
/** Time limit for the metadata lock of a table that is read, in seconds. */
const readSeconds = 60;
const lockAttempts = 3;
const lockPauseMs = 1_000;
/** First attempt that retains the lock of definitions until its end, since earlier attempts failed. */
const lockingAttempt = 3;

/** ER_LOCK_WAIT_TIMEOUT. */
const lockTimeout = 1205;

/**
 * Reads all users' databases as of one point in time, by several sessions (MySQL manual, "Consistent Nonlocking
 * Reads"). A short read lock makes their snapshots equal, and determines the position of the dump in the binary log. If
 * neither lock is granted, one session reads everything: that dump has no position, so that no log can be replayed on
 * it. Definitions are read under a lock that blocks changes of them. A table whose definition changes later cannot be
 * read in the snapshot: the backup fails and starts again, and its third attempt blocks such changes until its end.
 */
export async function openDump(
  instance: Instance,
  signal: AbortSignal,
  { attempt = 1 }: SourceOptions = {},
): Promise<OpenedSource> {
  const sessions: ByteSession[] = [];
  const open = async () => {
    const session = await openByteSession(instance, signal);
    sessions.push(session);
    return session;
  };
  const close = async () => {
    for (const session of sessions) session.close();
  };
  try {
    const lock = await open();
    const isLocked = await locked(lock, "LOCK INSTANCE FOR BACKUP", definitionsSeconds);
    const moment = await beginReading(lock, open, { instance, isLocked });
    await lock.run(`SET SESSION lock_wait_timeout = ${readSeconds}`);
    const { definitions, tables } = await readDefinitions(lock, moment.position);
    if (isLocked && attempt < lockingAttempt) await lock.run("UNLOCK INSTANCE");
    const chunks = await chunksOf(tables, moment.sessions[0]);
    const isLargeRow = ({ table }: Chunk) => mayHaveLargeRows(table.columns);
    // Only one session reads large rows, which engine and program have in memory.
    const large = chunks.filter(isLargeRow);
    const usual = chunks.filter((chunk) => !isLargeRow(chunk));
    return {
      streams: [
        definitionsOf(definitions),
        ...moment.sessions.map((session, index) =>
          rowsOf(session, index + 1, index === 0 ? [large, usual] : [usual], maxRowBytes(instance)),
        ),
      ],
      totalBytes: tables.reduce((sum, { bytes }) => sum + bytes, 0),
      end: async () => endOf(definitions, moment),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function endOf({ version, log }: Definitions, { time }: Moment): SourceEnd {
  if (log === undefined) return { version, dataTime: time, positions: null };
  const { branch, from, position: consistent } = log;
  return { version, dataTime: time, consistentTime: time, positions: { branch, from, consistent } };
}

/** Tries to take a lock; false if others have one that conflicts for too long. */
async function locked(session: ByteSession, sql: string, seconds: number): Promise<boolean> {
  await session.run(`SET SESSION lock_wait_timeout = ${seconds}`);
  try {
    await session.run(sql);
    return true;
  } catch (error) {
    if (numberOf(error) === lockTimeout) return false;
    throw error;
  }
}

/**
 * True while a statement runs that the lock would wait for. A lock attempt that times out has marked its tables for a
 * flush, and other sessions then wait for them until such a statement ends.
 */
async function hasLongStatements(session: ByteSession): Promise<boolean> {
  const rows = await session.rows(
    `SELECT 1 FROM performance_schema.processlist WHERE command IN ('Query', 'Execute') AND time > 1
       AND NOT ${isPlatformNameSql("user")} LIMIT 1`,
  );
  return rows.length > 0;
}

interface Moment {
  /** Sessions with equal snapshots. */
  readonly sessions: readonly [ByteSession, ...ByteSession[]];
  /** Time of the snapshot: it contains every write that was acknowledged before. */
  readonly time: Date;
  /** Undefined if no lock was granted, or if prepared transactions exist, whose rows are not in the snapshot. */
  readonly position: DumpPosition | undefined;
}

const beginSql = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";

async function beginReading(
  lock: ByteSession,
  open: () => Promise<ByteSession>,
  { instance, isLocked }: { readonly instance: Instance; readonly isLocked: boolean },
): Promise<Moment> {
  const first = await open();
  const sessions: [ByteSession, ...ByteSession[]] = [first];
  while (sessions.length < readers) sessions.push(await open());
  for (const session of sessions) await session.run("SET SESSION transaction_isolation = 'REPEATABLE-READ'");
  // The replay of the log begins with a file, so the archive needs no older ones.
  await lock.run("FLUSH LOCAL BINARY LOGS");
  if (!((await lockWrites(lock)) || (isLocked && (await lockTables(lock))))) {
    const time = new Date();
    await first.run(beginSql);
    return { sessions: [first], time, position: undefined };
  }
  const time = new Date();
  await Promise.all(sessions.map((session) => session.run(beginSql)));
  const position = await readPosition(lock, instance);
  await lock.run("UNLOCK TABLES");
  return { sessions, time, position };
}

/** Tries to block all writes. */
async function lockWrites(lock: ByteSession): Promise<boolean> {
  for (let attempt = 1; attempt <= lockAttempts; attempt += 1) {
    if (attempt > 1) await sleep(lockPauseMs);
    if (!(await hasLongStatements(lock))) return locked(lock, "FLUSH TABLES WITH READ LOCK", rowsSeconds);
  }
  return false;
}

/**
 * Tries to block writes in every table, which does not wait for statements that only read. False also if a table cannot
 * be opened, such as one of broken MERGE tables.
 */
async function lockTables(lock: ByteSession): Promise<boolean> {
  const rows = await lock.rows(
    `SELECT table_schema AS place, table_name AS name FROM information_schema.tables
     WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('mysql', 'sys', 'performance_schema')`,
  );
  const tables = rows.map(
    (row) => `${identifier(String(row.get("place")))}.${identifier(String(row.get("name")))} READ`,
  );
  try {
    return await locked(lock, byteText(`LOCK TABLES ${tables.join(", ")}`), rowsSeconds);
  } catch (error) {
    if (numberOf(error) === 0) throw error;
    return false;
  }
}

/** Position in the binary log while no write can commit. */
async function readPosition(lock: ByteSession, { spec }: Instance): Promise<DumpPosition | undefined> {
  if ((await lock.rows("XA RECOVER")).length > 0) return undefined;
  const [status] = await lock.rows("SHOW BINARY LOG STATUS");
  const [server] = await lock.rows("SELECT @@GLOBAL.server_uuid AS uuid");
  if (status === undefined || server === undefined) throw new Error("the engine has no binary log");
  const file = fileNumber(String(status.get("File")));
  const term = Number(spec.term);
  return {
    gtids: String(status.get("Executed_Gtid_Set")).replaceAll(/\s/g, ""),
    branch: formatBranch({ server: String(server.get("uuid")), file }),
    from: formatPosition({ term, file, offset: 0 }),
    position: formatPosition({ term, file, offset: Number(String(status.get("Position"))) }),
  };
}

interface Chunk {
  readonly index: number;
  readonly table: SourceTable;
  readonly condition: string | undefined;
}

/** Chunks of all tables. Large tables come first, so that the sessions end at about the same time. */
async function chunksOf(tables: readonly SourceTable[], session: ByteSession): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  const ordered = [...tables.entries()]
    .filter(([, { hasRows }]) => hasRows)
    .toSorted(([, a], [, b]) => b.bytes - a.bytes);
  for (const [index, table] of ordered) {
    const isDivided = table.keyColumn !== undefined && isLarge(table.bytes);
    const range = isDivided ? await released(session, () => readKeyRange(session, table)) : undefined;
    for (const condition of chunkConditions(table.bytes, range)) chunks.push({ index, table, condition });
  }
  return chunks;
}

/**
 * Runs the work and then releases its metadata locks. A transaction retains the lock of each table that it read, and a
 * waiting change of a table's definition would block every other access to the table.
 */
async function released<T>(session: ByteSession, work: () => Promise<T>): Promise<T> {
  await session.run("SAVEPOINT chunk");
  const result = await work();
  await session.run("ROLLBACK TO SAVEPOINT chunk");
  return result;
}

function definitionsOf(definitions: Definitions): SourceStream {
  async function* bytes(): AsyncGenerator<Buffer> {
    yield Buffer.from(JSON.stringify(definitions));
  }
  return { name: definitionsStream, bytes: bytes() };
}

function maxRowBytes({ spec }: Instance): number {
  return Math.floor(Number(spec.memoryBytes) * rowShare);
}

function rowsOf(session: ByteSession, number: number, queues: readonly Chunk[][], maxBytes: number): SourceStream {
  const next = () => queues.find(({ length }) => length > 0)?.shift();
  async function* bytes(): AsyncGenerator<Buffer> {
    const counts = new Map<number, number>();
    for (let chunk = next(); chunk !== undefined; chunk = next()) {
      await session.run("SAVEPOINT chunk");
      yield* framesOf(session, chunk, counts, maxBytes);
      await session.run("ROLLBACK TO SAVEPOINT chunk");
    }
    yield endFrame(counts);
  }
  return { name: rowsStream(number), bytes: bytes() };
}

async function* framesOf(
  session: ByteSession,
  { index, table, condition }: Chunk,
  counts: Map<number, number>,
  maxBytes: number,
): AsyncGenerator<Buffer> {
  const { database, name, columns } = table;
  const { expressions, tuple, largeTuple } = rowText(columns);
  const where = condition === undefined ? "" : ` WHERE ${condition}`;
  const from = byteText(`${identifier(database)}.${identifier(name)}`);
  let values = "";
  let rows = 0;
  const count = (added: number) => counts.set(index, (counts.get(index) ?? 0) + added);
  for await (const row of session.stream(`SELECT ${expressions} FROM ${from}${where}`)) {
    const size = sizeOf(row);
    if (size > largeRowBytes) {
      const text = largeTuple(row);
      requireRow(`${database}.${name}`, { size, maxBytes, length: text.bytes });
      yield frameHeader(index, 1, text.bytes);
      yield* text.pieces;
      count(1);
      continue;
    }
    const next = tuple(row);
    values = rows === 0 ? next : `${values},${next}`;
    rows += 1;
    if (values.length < frameLength) continue;
    yield frameOf(index, rows, values);
    count(rows);
    [values, rows] = ["", 0];
  }
  if (rows > 0) yield frameOf(index, rows, values);
  count(rows);
}

/** Throws for a row that the machine's memory is too small for, or that no restore can load. */
function requireRow(
  table: string,
  { size, maxBytes, length }: { readonly size: number; readonly maxBytes: number; readonly length: number },
): void {
  const found = `A row of ${table} has ${Math.ceil(size / 1_048_576)} MiB.`;
  if (size > maxBytes)
    throw new PlanTooSmall(
      `${found} The memory of the plan is enough for backups of rows up to ${Math.floor(maxBytes / 1_048_576)} MiB: take a larger plan.`,
      Math.ceil(size / rowShare),
    );
  if (length > maxRowLength)
    throw new Error(
      `${found} Its text in the backup may have ${maxRowLength >> 20} MiB, and binary data have two bytes each.`,
    );
}
