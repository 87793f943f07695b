import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { addressOf, openValkey } from "@holdfast/testing/api/clients.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import type { RunningService } from "@holdfast/testing/platform/services.ts";

/** A session that the server closed is opened again. */
interface NodeSession {
  write(): Promise<unknown>;
  close(): Promise<unknown> | void;
}

/** One acknowledged write. Times are of this process. */
interface Written {
  readonly host: string;
  readonly sentMs: number;
  readonly ackedMs: number;
}

/** Writes to each of these names continuously, by sessions of their own. */
export interface NodeWriters {
  /** Time of the first acknowledged write to this name that was sent after this. */
  firstAfter(host: string, atMs: number): number | undefined;
  /** Pairs of writes of one node between which another node accepted a write: both were writable at the same time. */
  overlaps(): string[];
  /** Maximum time in ms since `fromMs` without an acknowledged write. */
  longestWithout(fromMs: number): number;
  stop(): Promise<void>;
}

const timeoutMs = 1_000;
const pauseMs = 50;
/** Time in ms within which no service changes its primary twice. */
const shortMs = 2_000;

/** `open`: a session with the node of this name, which is resolved each time, as by a client that honors the TTL. */
export function startNodeWriters(hosts: readonly string[], open: (host: string) => Promise<NodeSession>): NodeWriters {
  const over = new AbortController();
  const written = new Map<string, Written[]>(hosts.map((host) => [host, []]));
  const running = Promise.all(hosts.map(write));

  async function write(host: string): Promise<void> {
    let side: NodeSession | undefined;
    while (!over.signal.aborted) {
      const sentMs = performance.now();
      try {
        side ??= await open(host);
        await side.write();
        written.get(host)?.push({ host, sentMs, ackedMs: performance.now() });
        // Time: the rate of the writes and reconnections.
        await sleep(pauseMs);
      } catch {
        void Promise.resolve(side?.close()).catch(() => undefined);
        side = undefined;
        // Time: the rate of the writes and reconnections.
        await sleep(pauseMs);
      }
    }
    await Promise.resolve(side?.close()).catch(() => undefined);
  }

  return {
    firstAfter: (host, atMs) => written.get(host)?.find(({ sentMs }) => sentMs > atMs)?.ackedMs,
    overlaps() {
      const all = [...written.values()];
      return all.flatMap((own) => all.filter((other) => other !== own).flatMap((other) => overlapsOf(own, other)));
    },
    longestWithout(fromMs) {
      const times = [...written.values()].flat().flatMap(({ sentMs, ackedMs }) => (sentMs > fromMs ? [ackedMs] : []));
      const inOrder = [fromMs, ...times.toSorted((a, b) => a - b)];
      return Math.max(...inOrder.map((time, index) => time - (inOrder[index - 1] ?? fromMs)));
    },
    async stop() {
      over.abort();
      await running;
    },
  };
}

/** Writes of another host between two adjacent writes of one host, a sentence each. Both lists are ordered by time. */
function overlapsOf(own: readonly Written[], others: readonly Written[]): string[] {
  const found: string[] = [];
  let next = 0;
  for (const [index, before] of own.entries()) {
    const after = own[index + 1];
    if (after === undefined || after.sentMs - before.ackedMs > shortMs) continue;
    while ((others[next]?.sentMs ?? Number.POSITIVE_INFINITY) <= before.ackedMs) next += 1;
    const between = others[next];
    if (between !== undefined && between.ackedMs < after.sentMs)
      found.push(`${before.host} and ${between.host} at ${Math.round(between.sentMs)} ms`);
  }
  return found;
}

/** Rows of a PostgreSQL that has the table `sides`. */
export function rowsOf(
  platform: Platform,
  { connection, password }: RunningService,
): (host: string) => Promise<NodeSession> {
  return async (host) => {
    const client = new Client({
      host: await addressOf(platform, host),
      port: connection.port,
      user: connection.user,
      password,
      database: connection.database,
      ssl: { ca: connection.ca_certificate, servername: host },
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
    });
    client.on("error", () => undefined);
    await client.connect();
    return {
      write: () => client.query("INSERT INTO sides VALUES ($1)", [host]),
      close: () => client.end(),
    };
  };
}

/** Counters of a Valkey, one a node. */
export function countersOf(
  platform: Platform,
  { connection, password }: RunningService,
): (host: string) => Promise<NodeSession> {
  return async (host) => {
    const client = await openValkey(platform, { ...connection, host }, { password, timeoutMs });
    return { write: () => client.incr(`sides:${host}`), close: () => client.disconnect() };
  };
}
