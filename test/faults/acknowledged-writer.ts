import { setTimeout as sleep } from "node:timers/promises";
import type { Redis as Valkey } from "iovalkey";
import type { Client } from "pg";
import { openPostgresql, openValkey } from "../support/api/clients.ts";
import type { Platform } from "../support/platform/platform.ts";
import type { RunningService } from "../support/platform/services.ts";
import { waitUntil } from "../support/wait-until.ts";

/** A row that was acknowledged, and when its write began and ended: milliseconds since 1970. */
export interface AcknowledgedRow {
  readonly id: number;
  readonly begunAt: number;
  readonly acknowledgedAt: number;
}

/** Writes numbered rows and notes each that the engine acknowledged. */
export interface AcknowledgedWriter {
  /** In order. */
  readonly rows: readonly AcknowledgedRow[];
  readonly acknowledged: number;
  /** Number of the last one; 0 before the first. */
  readonly last: number;
  /** Resolves when its signal fired and its last write ended. */
  readonly done: Promise<void>;
  /** Numbers that were acknowledged and are not there. */
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
 * Parameters of a Valkey that keeps every value that it acknowledged when it is killed. By default it puts nothing into its
 * append-only file while a flush is under way, for two seconds at most.
 */
export const flushedAtOnce = { appendfsync: "always" };

export function writeValues(platform: Platform, { connection, password }: RunningService, signal: AbortSignal) {
  return startWriter<Valkey>({
    connect: () => openValkey(platform, connection, { password }),
    write: async (client, id) => void (await client.sadd("ledger", id)),
    close: async (client) => client.disconnect(),
    read: async (client) => (await client.smembers("ledger")).map(Number),
    signal,
  });
}

/** Writes by the engine's own client until the signal. */
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
        const begunAt = Date.now();
        await engine.write(client, id);
        acknowledged.push({ id, begunAt, acknowledgedAt: Date.now() });
        await sleep(pauseMs);
      } catch {
        // Killed, cut or not there yet: what became of this row is not known, so it is not counted.
        if (client !== undefined) await engine.close(client).catch(() => undefined);
        client = undefined;
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
      // What is acknowledged while it is read may come too late to be read.
      const asked = [...acknowledged];
      const rows = await waitUntil(
        "what was written can be read",
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
      return asked.flatMap(({ id }) => (present.has(id) ? [] : id));
    },
  };
}
