import { setTimeout as sleep } from "node:timers/promises";
import { Client, type ClientConfig } from "pg";

/** A session with the server that currently accepts writes. */
export interface WriteSession {
  /** Resolves when the row with this number is acknowledged; a number with a lost acknowledgment is written again. */
  write(number: number): Promise<unknown>;
  /** Number of the existing rows below this number. */
  countBelow(number: number): Promise<number>;
  /** Closes without waiting: the server may be paused. */
  close(): void;
}

/** Writes a row each 5 ms, and reconnects by name after each failure. */
export interface ShortTimeoutWriter {
  /** Times of the acknowledged rows, of `performance.now()`; the index is the row's number. */
  readonly acknowledgedAt: readonly number[];
  /** Number of acknowledged rows that do not exist. */
  missing(): Promise<number>;
  /** Resolves when its last write is over. */
  stop(): Promise<void>;
}

/** Time limit of a connection and of a response. */
export const timeoutMs = 500;

const everyMs = 5;

export function startShortTimeoutWriter(open: () => Promise<WriteSession>): ShortTimeoutWriter {
  const acknowledgedAt: number[] = [];
  let stopped = false;

  async function run(): Promise<void> {
    let session: WriteSession | undefined;
    while (!stopped) {
      try {
        session ??= await open();
        await session.write(acknowledgedAt.length);
        acknowledgedAt.push(performance.now());
      } catch {
        session?.close();
        session = undefined;
      }
      await sleep(everyMs);
    }
    session?.close();
  }

  const running = run();
  return {
    acknowledgedAt,
    async missing() {
      const count = acknowledgedAt.length;
      const session = await open();
      const found = await session.countBelow(count);
      session.close();
      return count - found;
    },
    async stop() {
      stopped = true;
      await running;
    },
  };
}

/** Rows of a PostgreSQL table, which the first session creates. */
export async function openRows(config: ClientConfig): Promise<WriteSession> {
  const client = new Client({ ...config, connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs });
  client.on("error", () => undefined);
  const close = () => void client.end().catch(() => undefined);
  try {
    await client.connect();
    await client.query("CREATE TABLE IF NOT EXISTS written (id bigint)");
  } catch (error) {
    close();
    throw error;
  }
  return {
    close,
    write: (number) => client.query("INSERT INTO written VALUES ($1)", [number]),
    async countBelow(number) {
      const sql = "SELECT count(DISTINCT id)::int AS count FROM written WHERE id < $1";
      const { rows } = await client.query<{ count: number }>(sql, [number]);
      return rows[0]?.count ?? 0;
    },
  };
}
