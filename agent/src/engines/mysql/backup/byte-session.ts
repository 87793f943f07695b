import { readEngineFile } from "../../../os/engine-file.ts";
import type { Instance } from "../../instance.ts";
import { openByteConnection, type Value } from "../byte-connection.ts";
import { engineSocket, platform, secretFile } from "../layout.ts";
import { neverSlow } from "../session.ts";

/**
 * A session of the platform that exchanges bytes. A statement is a string with one character per byte (`byteText`), so
 * that rows, and routines in the character set of their author, pass through it unchanged.
 */
export interface ByteSession {
  run(sql: string): Promise<void>;
  /** Rows of a small result, by the names of its columns. */
  rows(sql: string): Promise<ReadonlyMap<string, Value>[]>;
  /** Rows of a result of any size, in the order of its columns. The engine waits while they are not read. */
  stream(sql: string): AsyncIterable<readonly Value[]>;
  close(): void;
}

/** Time limit of the engine's wait for a client that does not read. It covers an outage of the object store. */
const networkTimeoutSeconds = 86_400;

/** SQL modes that accept rows written under any other mode, and store a zero in an AUTO_INCREMENT column. */
const loadMode = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION";

const settings: Readonly<Record<string, string | number>> = {
  sql_mode: `'${loadMode}'`,
  time_zone: "'+00:00'",
  character_set_client: "utf8mb4",
  character_set_results: "binary",
  collation_connection: "utf8mb4_bin",
  autocommit: 1,
  completion_type: "'NO_CHAIN'",
  max_execution_time: 0,
  net_read_timeout: networkTimeoutSeconds,
  net_write_timeout: networkTimeoutSeconds,
  wait_timeout: networkTimeoutSeconds,
  foreign_key_checks: 0,
  unique_checks: 0,
  innodb_strict_mode: 0,
  sql_require_primary_key: 0,
  sql_generate_invisible_primary_key: 0,
  information_schema_stats_expiry: 0,
  print_identified_with_as_hex: 1,
  long_query_time: neverSlow,
  sql_quote_show_create: 1,
};

export async function openByteSession(instance: Instance, signal: AbortSignal): Promise<ByteSession> {
  const options = {
    socketPath: engineSocket(instance),
    user: platform,
    password: await readEngineFile(secretFile(instance)),
    charset: "BINARY",
  };
  const connection = await openByteConnection(options, signal);
  try {
    const list = Object.entries(settings).map(([name, value]) => `SESSION ${name} = ${value}`);
    await connection.query(`SET ${list.join(", ")}`);
  } catch (error) {
    connection.close();
    throw error;
  }
  return {
    async run(sql) {
      await connection.query(sql);
    },
    async rows(sql) {
      const { fields, rows } = await connection.query(sql);
      return rows.map((row) => new Map(fields.map(({ name }, index) => [name, row[index] ?? null])));
    },
    stream: (sql) => connection.stream(sql),
    close: () => connection.close(),
  };
}

/** Encodes a string in UTF-8, with one character per byte in the result. */
export const byteText = (text: string): string => Buffer.from(text).toString("latin1");
