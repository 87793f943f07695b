import { connect as connectTcp } from "node:net";
import { hasCode } from "@holdfast/common/system-error.ts";
import { cachingSha2Verifier } from "@holdfast/controller/services/engine/caching-sha2-verifier.ts";
import { mysql } from "@holdfast/controller/services/engine/mysql.ts";
import type { LogPositions } from "@holdfast/controller/services/engine/log-positions.ts";
import { type Connection, createConnection } from "mysql2/promise";
import type { ConformanceClient, ConnectOptions } from "./conformance-subject.ts";
import type { EngineEndpoint } from "./engine-clients.ts";

/** MySQL's verifier with a fixed salt, so that a password always has the same one. */
export function mysqlVerifier(password: string): string {
  return cachingSha2Verifier(password, "a.fixed.salt.of.20.c");
}

/** Order of two positions, as controllers compare them. */
export const comparePositions: LogPositions["compare"] = (a, b) =>
  mysql.replicas?.positions.compare(a, b) ?? "diverged";

/** A user's session; the caller ends it. */
export async function connectMysql(
  machine: EngineEndpoint,
  options: ConnectOptions & { readonly database?: string; readonly plain?: boolean },
): Promise<Connection> {
  const { address, port } = machine.instance.spec;
  const { from = address, serverName = machine.serverName } = options;
  const stream = connectTcp({ host: address, port, localAddress: from });
  const tls = { ca: machine.ca, verifyIdentity: true, minVersion: "TLSv1.2" } as const;
  const connection = await createConnection({
    // The name that the certificate must have; the stream has the address.
    host: serverName,
    user: options.user,
    password: options.password,
    database: options.database ?? "defaultdb",
    stream,
    ...(options.plain === true ? {} : { ssl: tls }),
  });
  connection.on("error", () => undefined);
  return connection;
}

/** Creates the table of entries. The engine may end a deadlock of two sessions that create it at the same time. */
async function createTable(client: Connection): Promise<void> {
  try {
    await client.query("CREATE TABLE IF NOT EXISTS kv (k VARCHAR(100) PRIMARY KEY, value TEXT)");
  } catch (error) {
    if (!hasCode(error, "ER_LOCK_DEADLOCK")) throw error;
    await createTable(client);
  }
}

export async function mysqlClient(machine: EngineEndpoint, options: ConnectOptions): Promise<ConformanceClient> {
  const client = await connectMysql(machine, options);
  const ended = new Promise<void>((resolve) => {
    client.on("error", () => resolve());
    client.once("end", () => resolve());
  });
  if (options.user === "app_user") await createTable(client);
  return {
    async write(key, value) {
      await client.query("INSERT INTO kv VALUES (?, ?) ON DUPLICATE KEY UPDATE value = VALUES(value)", [key, value]);
    },
    async read(key) {
      const [rows] = await client.query("SELECT value FROM kv WHERE k = ?", [key]);
      return (rows as { value: string }[])[0]?.value;
    },
    ended,
    close: () => client.end(),
  };
}
