import type { SessionSettings } from "@holdfast/common/postgresql/session-settings.ts";
import type { Instance } from "../engine-driver.ts";
import { consoleRole } from "./layout.ts";
import {
  type FieldDef,
  platformClient,
  type QueryArrayConfig,
  type QueryResult,
  StreamedQuery,
} from "./platform-client.ts";

/**
 * Settings in addition to the settings of every platform session: a checked statement only reads, for a limited time,
 * in one process.
 */
const reading: SessionSettings = {
  default_transaction_read_only: "on",
  constraint_exclusion: "off",
  idle_in_transaction_session_timeout: "60s",
  lock_timeout: "5s",
  max_parallel_workers_per_gather: "0",
  // A session of the console has little memory: what is larger goes to disk.
  work_mem: "16MB",
};

export interface ConsoleSession {
  /** Runs one statement by the extended protocol; values in the engine's text format. */
  query(sql: string, values?: readonly unknown[]): Promise<readonly TextRow[]>;
  /** Runs a query and passes each row on as it arrives. Returns the columns and the number of rows. */
  each(sql: string, take: (row: TextRow, columns: readonly Column[]) => void): Promise<StreamedResult>;
}

export type TextRow = readonly (string | null)[];

export interface Column {
  readonly name: string;
  readonly type: number;
}

export interface StreamedResult {
  readonly columns: readonly Column[];
  readonly rowCount: number;
}

export interface ConsoleOptions {
  readonly database: string;
  readonly timeoutMs: number;
  /** Maximum number of bytes that the session receives in total. */
  readonly bytesMax: number;
}

/** Thrown when a result exceeds the session's `bytesMax`. */
export class ResultTooLarge extends Error {
  override readonly name = "ResultTooLarge";
}

/**
 * Runs the work in a new session of the console's login. An abort closes the connection without waiting, after which
 * the engine ends the statement (`client_connection_check_interval`).
 */
export async function withConsoleSession<T>(
  instance: Instance,
  { database, timeoutMs, bytesMax }: ConsoleOptions,
  signal: AbortSignal,
  work: (session: ConsoleSession) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const client = platformClient(instance, {
    user: consoleRole,
    database,
    settings: { ...reading, statement_timeout: String(timeoutMs) },
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
    if (received > bytesMax) stream.destroy((broken = new ResultTooLarge("the result is too large")));
  });
  /** Throws the reason why the session ended, if that is what failed the statement. */
  const rethrow = (error: unknown): never => {
    signal.throwIfAborted();
    throw broken ?? error;
  };
  const run = (config: QueryArrayConfig) => client.query<(string | null)[]>(config);
  signal.addEventListener("abort", abort, { once: true });
  try {
    await client.connect();
    return await work({
      query: async (sql, values = []) => (await run(extended(sql, values))).rows,
      async each(sql, take) {
        let rowCount = 0;
        const query = new StreamedQuery<(string | null)[]>(extended(sql, []));
        query.on("row", (row, result) => {
          rowCount += 1;
          take(row, columnsOf(result?.fields ?? []));
        });
        const { fields } = await new Promise<QueryResult>((resolve, reject) => {
          query.on("end", resolve);
          query.on("error", reject);
          client.query(query);
        }).catch(rethrow);
        return { columns: columnsOf(fields), rowCount };
      },
    });
  } catch (error) {
    return rethrow(error);
  } finally {
    signal.removeEventListener("abort", abort);
    client.end().catch(() => stream.destroy());
  }
}

/** The extended protocol accepts one statement only: the engine's parser refuses a second one. */
function extended(text: string, values: readonly unknown[]): QueryArrayConfig & { queryMode: "extended" } {
  return { text, values: [...values], rowMode: "array", queryMode: "extended" };
}

function columnsOf(fields: readonly FieldDef[]): Column[] {
  return fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }));
}
