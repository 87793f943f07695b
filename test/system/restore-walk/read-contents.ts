import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import type { Client } from "pg";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import type { RunningService } from "@holdfast/testing/platform/services.ts";
import type { ServiceContents, DatabaseContents } from "./walk-ledger.ts";

/** Options by which sessions of walks work under any parameters of the service. */
const sessionOptions = [
  "statement_timeout=0",
  "lock_timeout=0",
  "idle_session_timeout=0",
  "idle_in_transaction_session_timeout=0",
  "transaction_timeout=0",
  // An acknowledged commit is durable.
  "synchronous_commit=on",
  // A database may have another default.
  "default_transaction_read_only=off",
  "search_path=public",
  "standard_conforming_strings=on",
]
  .map((setting) => `-c ${setting}`)
  .join(" ");

/** Connected to a database of the service as its default user. The caller ends it. */
export function openSession(
  platform: Platform,
  { connection, password }: RunningService,
  database: string = defaultDatabase,
  options = sessionOptions,
): Promise<Client> {
  return openPostgresql(platform, connection, { password, database, options });
}

async function columnOf<T>(client: Client, sql: string): Promise<T[]> {
  return (await client.query<{ value: T }>(sql)).rows.map(({ value }) => value);
}

async function pairsOf(client: Client, sql: string): Promise<Map<string, number>> {
  const { rows } = await client.query<{ name: string; value: string }>(sql);
  return new Map(rows.map(({ name, value }) => [name, Number(value)]));
}

/** All contents of a service that a ledger can describe. Databases that admit no connection are opened for that. */
export async function readContents(platform: Platform, service: RunningService): Promise<ServiceContents> {
  const client = await openSession(platform, service);
  try {
    const { rows } = await client.query<{ id: string; good: boolean }>(
      "SELECT id, text = md5(id::text) AS good FROM ledger",
    );
    const bases = await client.query<{ name: string; valid: boolean; closed: boolean }>(
      `SELECT datname AS name, datconnlimit <> -2 AS valid, NOT datallowconn OR datconnlimit = 0 AS closed
       FROM pg_database WHERE datname ~ '^base_'`,
    );
    const databases = new Map<string, DatabaseContents | "invalid">([[defaultDatabase, await readDatabase(client)]]);
    for (const { name, closed } of bases.rows)
      if (closed) await client.query(`ALTER DATABASE ${name} WITH ALLOW_CONNECTIONS true CONNECTION LIMIT -1`);
    for (const { name, valid } of bases.rows)
      databases.set(name, valid ? await readOther(platform, service, name) : "invalid");
    return {
      rows: new Set(rows.map(({ id }) => Number(id))),
      damaged: rows.flatMap(({ id, good }) => (good ? [] : Number(id))),
      roles: new Set(await columnOf<string>(client, "SELECT rolname AS value FROM pg_roles")),
      prepared: new Set(await columnOf<string>(client, "SELECT gid AS value FROM pg_prepared_xacts")),
      databases,
    };
  } finally {
    await client.end();
  }
}

async function readOther(platform: Platform, service: RunningService, name: string): Promise<DatabaseContents> {
  const client = await openSession(platform, service, name);
  try {
    return await readDatabase(client);
  } finally {
    await client.end();
  }
}

async function readDatabase(client: Client): Promise<DatabaseContents> {
  const names = await columnOf<string>(
    client,
    "SELECT relname AS value FROM pg_class WHERE relkind = 'r' AND relname ~ '^table_[0-9]+$'",
  );
  const tables = new Map<string, number>();
  for (const name of names) {
    const [count] = await columnOf<string>(
      client,
      `SELECT count(*) FILTER (WHERE text = md5(i::text)) AS value FROM ${name}`,
    );
    tables.set(name, Number(count));
  }
  return {
    extensions: new Set(await columnOf<string>(client, "SELECT extname AS value FROM pg_extension")),
    tables,
    sequences: await pairsOf(
      client,
      "SELECT sequencename AS name, coalesce(last_value, 0) AS value FROM pg_sequences WHERE sequencename ~ '^sequence_'",
    ),
    settings: new Set(
      await columnOf<string>(
        client,
        `SELECT split_part(unnest(setconfig), '=', 1) AS value FROM pg_db_role_setting
         JOIN pg_database ON pg_database.oid = setdatabase WHERE setrole = 0 AND datname = current_database()`,
      ),
    ),
    largeObjects: await pairsOf(
      client,
      "SELECT oid::text AS name, length(lo_get(oid)) AS value FROM pg_largeobject_metadata",
    ),
  };
}
