import { setTimeout as sleep } from "node:timers/promises";
import type { Redis as Valkey } from "iovalkey";
import type { Client } from "pg";
import { openPostgresql, openValkey } from "@holdfast/testing/api/clients.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import type { RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

/** An acknowledged row, with the times at which its write started and ended, in ms since 1970. */
export interface AcknowledgedRow {
  readonly id: number;
  readonly startedAt: number;
  readonly acknowledgedAt: number;
}

/** Writes numbered rows and records each that the engine acknowledged. */
export interface AcknowledgedWriter {
  /** Acknowledged rows, in the order of writing. */
  readonly rows: readonly AcknowledgedRow[];
  readonly acknowledged: number;
  /** Number of the last acknowledged row; 0 before the first. */
  readonly last: number;
  /** Resolves when the signal was aborted and the last write has ended. */
  readonly done: Promise<void>;
  /** Numbers of acknowledged rows that are absent. */
  missing(): Promise<number[]>;
}

const pauseMs = 20;

export async function writeRows(
  platform: Platform,
  { connection, password }: RunningService,
  signal: AbortSignal,
): Promise<AcknowledgedWriter> {
  const connect = () => openPostgresql(platform, connection, { password });
  const first = await connect();
  await first.query("CREATE TABLE IF NOT EXISTS ledger (id bigint PRIMARY KEY)");
  await first.end();
  return startWriter<Client>({
    connect,
    write: async (client, id) => void (await client.query("INSERT INTO ledger VALUES ($1)", [id])),
    close: (client) => client.end(),
    read: async (client) =>
      (await client.query<{ id: string }>("SELECT id FROM ledger")).rows.map(({ id }) => Number(id)),
    signal,
  });
}

/**
 * Parameters of a Valkey that retains every acknowledged value when it is killed. By default Valkey defers writes to
 * the append-only file during a flush, by at most two seconds.
 */
export const flushOnWrite = { appendfsync: "always" };

export function writeValues(platform: Platform, { connection, password }: RunningService, signal: AbortSignal) {
  return startWriter<Valkey>({
    connect: () => openValkey(platform, connection, { password }),
    write: async (client, id) => void (await client.sadd("ledger", id)),
    close: async (client) => client.disconnect(),
    read: async (client) => (await client.smembers("ledger")).map(Number),
    signal,
  });
}

/** Writes with the engine's own client until the signal is aborted. */
export function startWriter<C>(engine: {
  connect(): Promise<C>;
  write(client: C, id: number): Promise<void>;
  close(client: C): Promise<void>;
  read(client: C): Promise<number[]>;
  signal: AbortSignal;
}): AcknowledgedWriter {
  const acknowledged: AcknowledgedRow[] = [];
  const { signal } = engine;

  async function run(): Promise<void> {
    let client: C | undefined;
    for (let id = 1; !signal.aborted; id += 1) {
      try {
        client ??= await engine.connect();
        const startedAt = Date.now();
        await engine.write(client, id);
        acknowledged.push({ id, startedAt, acknowledgedAt: Date.now() });
        // Time: the rate of the writer.
        await sleep(pauseMs);
      } catch {
        // Killed, disconnected or not reachable: the outcome of this row is unknown, so it is not counted.
        if (client !== undefined) await engine.close(client).catch(() => undefined);
        client = undefined;
        // Time: the rate of reconnections.
        await sleep(100);
      }
    }
    if (client !== undefined) await engine.close(client).catch(() => undefined);
  }

  return {
    rows: acknowledged,
    get acknowledged() {
      return acknowledged.length;
    },
    get last() {
      return acknowledged.at(-1)?.id ?? 0;
    },
    done: run(),
    async missing() {
      // Rows that are acknowledged during the read may be missing in it.
      const expected = [...acknowledged];
      const rows = await waitUntil(
        "written rows are readable",
        async () => {
          const client = await engine.connect();
          try {
            return await engine.read(client);
          } finally {
            await engine.close(client);
          }
        },
        { everyMs: 500 },
      );
      const present = new Set(rows);
      return expected.flatMap(({ id }) => (present.has(id) ? [] : id));
    },
  };
}
