import pg from "pg";
import type { Instance } from "../engine-driver.ts";
import { consoleRole } from "./layout.ts";

/** What the owner of a database can set for all who enter it must not change what a judged statement means or may do. */
const pinned = {
  search_path: "pg_catalog,pg_temp",
  role: "none",
  default_transaction_read_only: "on",
  default_transaction_isolation: "read\\ committed",
  default_transaction_deferrable: "off",
  standard_conforming_strings: "on",
  row_security: "on",
  transform_null_equals: "off",
  constraint_exclusion: "off",
  client_connection_check_interval: "500ms",
  idle_in_transaction_session_timeout: "60s",
  lock_timeout: "5s",
  max_parallel_workers_per_gather: "0",
  jit: "off",
  bytea_output: "hex",
  datestyle: "ISO",
  intervalstyle: "postgres",
  timezone: "UTC",
  extra_float_digits: "1",
  client_encoding: "UTF8",
} as const;

export interface ConsoleSession {
  /** One statement, by the extended protocol; its rows as the engine's own texts. */
  query(sql: string, values?: readonly unknown[]): Promise<readonly TextRow[]>;
  /** The same, each row as it arrives. Answers the columns and how many rows there were. */
  each(sql: string, take: (row: TextRow, columns: readonly Column[]) => void): Promise<EachAnswer>;
}

export type TextRow = readonly (string | null)[];

export interface Column {
  readonly name: string;
  readonly type: number;
}

export interface EachAnswer {
  readonly columns: readonly Column[];
  readonly rowCount: number;
}

export interface ConsoleOptions {
  readonly database: string;
  readonly timeoutMs: number;
  /** More than this never comes out of the engine, in one answer or all together. */
  readonly bytesMax: number;
}

/** Thrown when an answer is larger than the session may receive. */
export class AnswerTooLarge extends Error {
  override readonly name = "AnswerTooLarge";
}

/** A session of the console's own login, used once and ended. An abort ends it at once, and its statement soon after. */
export async function withConsoleSession<T>(
  instance: Instance,
  { database, timeoutMs, bytesMax }: ConsoleOptions,
  signal: AbortSignal,
  work: (session: ConsoleSession) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const options = Object.entries({ ...pinned, statement_timeout: String(timeoutMs) });
  const client = new pg.Client({
    host: instance.paths.run,
    port: instance.spec.port,
    user: consoleRole,
    database,
    application_name: consoleRole,
    options: options.map(([name, value]) => `-c ${name}=${value}`).join(" "),
    types: { getTypeParser: () => (text: string) => text },
  });
  let broken: Error | undefined;
  client.on("error", (error) => {
    broken ??= error;
  });
  const { stream } = client.connection;
  const abort = () => stream.destroy(new Error("aborted"));
  let received = 0;
  stream.on("data", (chunk: Buffer) => {
    received += chunk.byteLength;
    if (received > bytesMax) stream.destroy((broken = new AnswerTooLarge("the answer is too large")));
  });
  /** Throws why the session ended, when that is why a statement failed. */
  const told = (error: unknown): never => {
    signal.throwIfAborted();
    throw broken ?? error;
  };
  const answer = (config: pg.QueryArrayConfig) => client.query<(string | null)[]>(config);
  signal.addEventListener("abort", abort, { once: true });
  try {
    await client.connect();
    return await work({
      query: async (sql, values = []) => (await answer(extended(sql, values))).rows,
      async each(sql, take) {
        let rowCount = 0;
        const query = new pg.Query<(string | null)[]>(extended(sql, []));
        query.on("row", (row, result) => {
          rowCount += 1;
          take(row, columnsOf(result?.fields ?? []));
        });
        const { fields } = await new Promise<pg.QueryResult>((resolve, reject) => {
          query.on("end", resolve);
          query.on("error", reject);
          client.query(query);
        }).catch(told);
        return { columns: columnsOf(fields), rowCount };
      },
    });
  } catch (error) {
    return told(error);
  } finally {
    signal.removeEventListener("abort", abort);
    client.end().catch(() => stream.destroy());
  }
}

/** One statement and no more, whatever its text: the engine's parser refuses a second one. */
function extended(text: string, values: readonly unknown[]): pg.QueryArrayConfig & { queryMode: "extended" } {
  return { text, values: [...values], rowMode: "array", queryMode: "extended" };
}

function columnsOf(fields: readonly pg.FieldDef[]): Column[] {
  return fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }));
}
