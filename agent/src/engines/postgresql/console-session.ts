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

/** Beside those of every session of the platform: a judged statement reads, for a while, with one process. */
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
    if (received > bytesMax) stream.destroy((broken = new AnswerTooLarge("the answer is too large")));
  });
  /** Throws why the session ended, when that is why a statement failed. */
  const told = (error: unknown): never => {
    signal.throwIfAborted();
    throw broken ?? error;
  };
  const answer = (config: QueryArrayConfig) => client.query<(string | null)[]>(config);
  signal.addEventListener("abort", abort, { once: true });
  try {
    await client.connect();
    return await work({
      query: async (sql, values = []) => (await answer(extended(sql, values))).rows,
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
function extended(text: string, values: readonly unknown[]): QueryArrayConfig & { queryMode: "extended" } {
  return { text, values: [...values], rowMode: "array", queryMode: "extended" };
}

function columnsOf(fields: readonly FieldDef[]): Column[] {
  return fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }));
}
