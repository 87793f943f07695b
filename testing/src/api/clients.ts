import { Redis as Valkey, type RedisOptions } from "iovalkey";
import { Client, type ClientConfig } from "pg";
import { resolveName } from "../network/dns-query.ts";
import type { Platform } from "../platform/platform.ts";
import type { ConnectionJson } from "./service-json.ts";
import { waitUntil } from "../wait-until.ts";

/** User and target of a connection. */
export interface Login {
  readonly user?: string;
  readonly password: string;
  readonly database?: string;
  /** "name" verifies the certificate against the service's name; "address" against the address, which must fail. */
  readonly verify?: "name" | "address";
  /** Timeout in ms of the connection and of a command; absent: a long default. */
  readonly timeoutMs?: number;
  /** Parameters of the session, as libpq's `options`; PostgreSQL only. */
  readonly options?: string;
}

/** Address that the platform's own DNS server returns for a service's name. */
export async function addressOf(platform: Platform, host: string): Promise<string> {
  return waitUntil(`${host} has an address`, async () => (await resolveName(platform.admin.dns_server, host))[0], {
    withinMs: 30_000,
  });
}

/** A service's connection with the host name for clients on private addresses. */
export function privateConnection(connection: ConnectionJson): ConnectionJson {
  return { ...connection, host: connection.private_host };
}

/** Connects as libpq does with `host`, `hostaddr` and `sslmode=verify-full`. The caller ends the client. */
export async function openPostgresql(platform: Platform, connection: ConnectionJson, login: Login): Promise<Client> {
  const address = await addressOf(platform, connection.host);
  const config: ClientConfig = {
    host: address,
    port: connection.port,
    user: login.user ?? connection.user,
    password: login.password,
    database: login.database ?? connection.database,
    ssl: { ca: connection.ca_certificate, ...(login.verify === "address" ? {} : { servername: connection.host }) },
    connectionTimeoutMillis: 10_000,
    query_timeout: 20_000,
    ...(login.options !== undefined && { options: login.options }),
  };
  const client = new Client(config);
  // A session that the platform ends fails at its next query; without a listener it would end the test's process.
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** Connects to Valkey and signs in. The caller disconnects the client. */
export async function openValkey(platform: Platform, connection: ConnectionJson, login: Login): Promise<Valkey> {
  return connectValkey({
    host: await addressOf(platform, connection.host),
    port: connection.port,
    username: login.user ?? connection.user,
    password: login.password,
    tls: { ca: connection.ca_certificate, ...(login.verify === "address" ? {} : { servername: connection.host }) },
    connectTimeout: login.timeoutMs ?? 10_000,
    commandTimeout: login.timeoutMs ?? 10_000,
  });
}

/** Connects to any server of Valkey's protocol, with a single attempt. The caller disconnects the client. */
export async function connectValkey(options: RedisOptions & { host: string; port: number }): Promise<Valkey> {
  const client = new Valkey({ ...options, lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 });
  // The reason of a rejection arrives as an event; the failed connect reports only that the connection is closed.
  let refusal: Error | undefined;
  client.on("error", (error: Error) => {
    refusal = error;
  });
  try {
    await client.connect();
  } catch (error) {
    throw new Error(`valkey at ${options.host}:${options.port} takes no client: ${refusal?.message ?? "it closed"}`, {
      cause: refusal ?? error,
    });
  }
  return client;
}

/** Runs one query on a new connection. */
export async function queryOnce<Row extends object>(
  platform: Platform,
  connection: ConnectionJson,
  login: Login,
  sql: string,
): Promise<Row[]> {
  const client = await openPostgresql(platform, connection, login);
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Runs one command on a new connection. */
export async function commandOnce(
  platform: Platform,
  connection: ConnectionJson,
  login: Login,
  command: string,
  ...args: string[]
): Promise<unknown> {
  const client = await openValkey(platform, connection, login);
  try {
    return await client.call(command, ...args);
  } finally {
    client.disconnect();
  }
}
