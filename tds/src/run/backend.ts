import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { optionsOf } from "@holdfast/common/postgresql/session-settings.ts";
import pg from "pg";

export type { FieldDef } from "pg";
export const { DatabaseError, escapeLiteral } = pg;

export interface BackendOptions {
  readonly socketDirectory: string;
  readonly port: number;
  readonly user: string;
  /** Password for PostgreSQL's SCRAM exchange; it is not stored elsewhere. */
  readonly password: string;
  readonly database: string;
  readonly applicationName: string;
}

export interface StatementResult {
  readonly fields: readonly pg.FieldDef[];
  readonly rowCount: number;
}

export interface RowReceiver {
  fields(fields: readonly pg.FieldDef[]): void;
  /** False: no further row arrives before `drained` resolves. */
  row(values: readonly (string | null)[]): boolean;
  drained(): Promise<void>;
}

export interface Notice {
  readonly code: string | undefined;
  readonly message: string;
  readonly detail: string | undefined;
}

/** One session of PostgreSQL for one session of a client. Statements run one at a time; values are text. */
export interface Backend {
  readonly processId: number;
  /** True inside a transaction block, also a failed one. */
  readonly inTransaction: boolean;
  /** True in a transaction block that an error aborted: its COMMIT would roll back. */
  readonly hasFailed: boolean;
  query(sql: string, values?: readonly (string | null)[]): Promise<(string | null)[][]>;
  /** One statement, by the extended protocol: PostgreSQL refuses a second one in the text. */
  stream(sql: string, values: readonly (string | null)[], receiver: RowReceiver): Promise<StatementResult>;
  /** Several statements without parameters, such as savepoints; the text contains nothing that users wrote. */
  script(sql: string): Promise<void>;
  /** Signal of the request in progress: its abort cancels a `query` or `stream` that runs, and refuses later ones. */
  attention: AbortSignal | undefined;
  /** Receives what triggers report during a statement. */
  onNotice: ((notice: Notice) => void) | undefined;
  end(): void;
}

/** Session settings on which the meaning and the output of translated statements depend. */
const sessionSettings = {
  // Translated statements qualify all names except PostgreSQL's own, so that users' functions cannot replace them.
  search_path: "pg_catalog,pg_temp",
  client_encoding: "UTF8",
  DateStyle: "ISO,MDY",
  IntervalStyle: "postgres",
  TimeZone: "UTC",
  bytea_output: "hex",
  extra_float_digits: "1",
  standard_conforming_strings: "on",
  client_connection_check_interval: "500ms",
  // JIT compilation of a plan cannot be canceled, and an attention must be served immediately.
  jit: "off",
};

const cancelIntervalMs = 100;

const unparsed: pg.CustomTypesConfig = { getTypeParser: () => (value: unknown) => value };

/** Opens a session; rejects with PostgreSQL's error if the password or the database is refused. */
export async function openBackend(
  options: BackendOptions,
  { onEnd, onNotification }: { onEnd: () => void; onNotification: () => void },
): Promise<Backend> {
  const client = new pg.Client({
    host: options.socketDirectory,
    port: options.port,
    user: options.user,
    password: options.password,
    database: options.database,
    application_name: options.applicationName,
    options: optionsOf(sessionSettings),
    types: unparsed,
  });
  // Errors during a statement reject the statement; an error of an idle session ends the session.
  client.on("error", onEnd);
  client.on("end", onEnd);
  client.on("notification", onNotification);
  let usesPassword = false;
  client.connection.once("authenticationSASLFinal", () => {
    usesPassword = true;
  });
  try {
    await client.connect();
    // The rules of the socket admit roles of the platform without a password.
    if (!usesPassword) throw new Error("PostgreSQL did not verify the password");
  } catch (error) {
    client.end().catch(() => {});
    throw error;
  }
  const { stream } = client.connection;
  // pg has these properties for its own cancel requests; its types lack them.
  const { processID = 0, secretKey = 0 } = client as pg.Client & { processID?: number; secretKey?: number };
  const extended = (text: string, values: readonly (string | null)[]) => ({
    text,
    values: [...values],
    rowMode: "array" as const,
    queryMode: "extended" as const,
  });
  const backend: Backend = {
    processId: processID,
    attention: undefined,
    onNotice: undefined,
    get inTransaction() {
      const status = client.getTransactionStatus();
      return status !== null && status !== "I";
    },
    get hasFailed() {
      return client.getTransactionStatus() === "E";
    },
    async query(sql, values = []) {
      return (await untilAttention(() => client.query<(string | null)[]>(extended(sql, values)))).rows;
    },
    async stream(sql, values, receiver) {
      const query = new pg.Query<(string | null)[]>(extended(sql, values));
      let isFirst = true;
      const wait = (drained: Promise<void>) => {
        stream.pause();
        drained.then(
          () => stream.resume(),
          () => stream.destroy(),
        );
      };
      let failure: unknown;
      let canceled: Promise<void> | undefined;
      query.on("row", (row, result) => {
        if (failure !== undefined) return;
        try {
          if (isFirst) {
            isFirst = false;
            receiver.fields(result?.fields ?? []);
          }
          if (!receiver.row(row)) wait(receiver.drained());
        } catch (error) {
          failure = error;
          canceled = cancel();
        }
      });
      const result = await untilAttention(
        () =>
          new Promise<pg.QueryResult>((resolve, reject) => {
            query.on("end", resolve);
            query.on("error", reject);
            client.query(query);
          }),
      ).catch(async (error: unknown) => {
        await canceled;
        throw failure ?? error;
      });
      await canceled;
      if (failure !== undefined) throw failure;
      if (isFirst && result.fields.length > 0) receiver.fields(result.fields);
      return { fields: result.fields, rowCount: result.rowCount ?? 0 };
    },
    async script(sql) {
      await client.query(sql);
    },
    end() {
      client.off("end", onEnd);
      client.end().catch(() => stream.destroy());
    },
  };
  client.on("notice", ({ code, message = "", detail }) => backend.onNotice?.({ code, message, detail }));
  return backend;

  /** Runs a statement, which the attention of the request cancels; no cancel request is left for a later statement. */
  async function untilAttention<T>(statement: () => Promise<T>): Promise<T> {
    const { attention } = backend;
    if (attention === undefined) return statement();
    attention.throwIfAborted();
    const ended = new AbortController();
    let canceled: Promise<void> | undefined;
    const start = () => {
      canceled = cancelUntil(ended.signal);
    };
    attention.addEventListener("abort", start, { once: true });
    try {
      return await statement();
    } finally {
      ended.abort();
      attention.removeEventListener("abort", start);
      await canceled;
    }
  }

  /** PostgreSQL ignores a cancel request that arrives before the statement does. */
  async function cancelUntil(ended: AbortSignal): Promise<void> {
    while (!ended.aborted) {
      await cancel();
      await delay(cancelIntervalMs, undefined, { signal: ended }).catch(() => {});
    }
  }

  /** Sends PostgreSQL's CancelRequest, over a separate connection. */
  async function cancel(): Promise<void> {
    const request = Buffer.alloc(16);
    request.writeInt32BE(16, 0);
    request.writeInt32BE(80_877_102, 4);
    request.writeInt32BE(processID, 8);
    request.writeInt32BE(secretKey, 12);
    const socket = connect(`${options.socketDirectory}/.s.PGSQL.${options.port}`, () => socket.end(request));
    socket.on("error", () => {});
    socket.resume();
    await new Promise<void>((resolve) => socket.once("close", () => resolve()));
  }
}
