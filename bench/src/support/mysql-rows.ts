import { connect } from "node:net";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import type { RunningService } from "@holdfast/testing/platform/services.ts";
import { type Connection, createConnection, type RowDataPacket } from "mysql2/promise";
import { timeoutMs, type WriteSession } from "./short-timeout-writer.ts";

/** A session over TLS by the name of a MySQL service. Rejects after the time limit. */
export async function openMysql(
  platform: Platform,
  { connection, password }: RunningService,
  withinMs = 60_000,
): Promise<Connection> {
  const { host, port, user, database, ca_certificate: ca } = connection;
  const stream = connect({ host: await addressOf(platform, host), port });
  const ssl = { ca, verifyIdentity: true };
  const opening = createConnection({ host, user, password, database: database ?? "", stream, ssl });
  const client = await within(withinMs, opening, () => stream.destroy());
  client.on("error", () => undefined);
  return client;
}

/** Rows of a table of a MySQL, which the first session creates. */
export async function openMysqlRows(platform: Platform, service: RunningService): Promise<WriteSession> {
  const client = await openMysql(platform, service, timeoutMs);
  const close = () => client.destroy();
  const run = <T>(work: Promise<T>) => within(timeoutMs, work, close);
  await run(client.query("CREATE TABLE IF NOT EXISTS written (id BIGINT PRIMARY KEY)"));
  return {
    close,
    write: (number) => run(client.query("REPLACE INTO written VALUES (?)", [number])),
    async countBelow(number) {
      const sql = "SELECT COUNT(*) AS count FROM written WHERE id < ?";
      const [rows] = await client.query<RowDataPacket[]>(sql, [number]);
      return Number(rows[0]?.["count"] ?? 0);
    },
  };
}

/** Rejects after the time limit, and gives the work up. */
async function within<T>(limitMs: number, work: Promise<T>, giveUp: () => void): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("no response in time")), limitMs);
  try {
    return await Promise.race([work, late]);
  } catch (error) {
    work.catch(() => undefined);
    giveUp();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
