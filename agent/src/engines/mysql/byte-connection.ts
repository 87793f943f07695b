import { Readable } from "node:stream";
import { type ConnectionOptions, createConnection, type FieldPacket } from "mysql2";

/** A value as the engine sends it: its bytes in the column's own character set; null for NULL. */
export type Value = Buffer | null;

/** A connection whose results are bytes. Every statement fails once it is closed or lost. */
export interface ByteConnection {
  query(
    sql: string,
  ): Promise<{ readonly fields: readonly FieldPacket[]; readonly rows: readonly (readonly Value[])[] }>;
  /** Rows of a result of any size. The engine waits while they are not read. */
  stream(sql: string, onFields?: (fields: readonly FieldPacket[]) => void): AsyncIterable<readonly Value[]>;
  close(): void;
}

/** Limit of rows that are read ahead, in bytes. Rows of any size pass: the next one is read after a large one. */
const aheadBytes = 1 << 20;

/** Opens a connection, which the signal closes. Throws the error of the sign-in. */
export async function openByteConnection(options: ConnectionOptions, signal: AbortSignal): Promise<ByteConnection> {
  signal.throwIfAborted();
  const core = createConnection(options);
  const connection = core.promise();
  const asBytes = { rowsAsArray: true, typeCast: (field: { buffer(): Value }) => field.buffer() };
  const open = new Set<Readable>();
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => undefined);

  // mysql2 ends neither the statements of a closed connection nor the streams of a lost one.
  function fail(error: Error): void {
    ended.reject(error);
    for (const stream of open) stream.destroy(error);
  }
  core.on("error", fail);
  core.on("end", () => fail(new Error("The connection to the engine ended.")));
  const close = () => {
    signal.removeEventListener("abort", close);
    core.destroy();
    fail(signal.aborted ? (signal.reason as Error) : new Error("The connection was closed."));
  };
  signal.addEventListener("abort", close, { once: true });

  const opened: ByteConnection = {
    async query(sql) {
      const [rows, fields] = await Promise.race([connection.query({ sql, ...asBytes }), ended.promise]);
      // A statement without a result has a header.
      const all: readonly unknown[] = Array.isArray(rows) ? rows : [];
      return { fields: fields ?? [], rows: all.map(valuesOf) };
    },
    stream(sql, onFields) {
      const query = core.query({ sql, ...asBytes });
      if (onFields !== undefined)
        query.on("fields", (fields: readonly FieldPacket[] | undefined) => onFields(fields ?? []));
      const stream = new Readable({ objectMode: true, read: () => undefined });
      let ahead = 0;
      let isPaused = false;
      const resume = () => {
        if (!isPaused) return;
        isPaused = false;
        core.resume();
      };
      query.on("result", (row: unknown) => {
        if (stream.destroyed) return;
        const values = valuesOf(row);
        ahead += sizeOf(values);
        stream.push(values);
        if (ahead <= aheadBytes || isPaused) return;
        isPaused = true;
        core.pause();
      });
      query.on("end", () => {
        if (!stream.destroyed) stream.push(null);
      });
      query.on("error", (error: Error) => {
        stream.destroy(error);
      });
      open.add(stream);
      // An error before the first read is thrown by that read.
      stream.on("error", () => undefined);
      stream.once("close", () => {
        open.delete(stream);
        resume();
      });
      async function* consumed(): AsyncGenerator<readonly Value[]> {
        for await (const row of stream as AsyncIterable<readonly Value[]>) {
          yield row;
          ahead -= sizeOf(row);
          if (ahead <= aheadBytes / 2) resume();
        }
      }
      return consumed();
    },
    close,
  };
  try {
    // Without notices of this variable the client does not change the encoding of statements.
    await opened.query("SET SESSION session_track_system_variables = ''");
  } catch (error) {
    close();
    throw error;
  }
  return opened;
}

function valuesOf(row: unknown): Value[] {
  return Array.isArray(row) ? row.map((value: unknown) => (Buffer.isBuffer(value) ? value : null)) : [];
}

/** Number of bytes of the values of a row. */
export function sizeOf(values: readonly Value[]): number {
  let bytes = 0;
  for (const value of values) bytes += value?.length ?? 0;
  return bytes;
}
