import { setTimeout as delay } from "node:timers/promises";
import type { Database as DatabaseAddress } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { createSemaphore, type Semaphore, type SemaphoreOptions } from "@holdfast/common/concurrency/semaphore.ts";
import { startupOptions } from "@holdfast/common/postgresql/session-settings.ts";
import pg from "pg";

export interface Statements {
  /** Runs one statement. Throws DatabaseUnavailable without a connection within 5 s. */
  rows<R = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<R[]>;
  /** Runs statements in one transaction. */
  transaction<T>(work: (rows: Rows) => Promise<T>): Promise<T>;
}

/**
 * The database of one app. Its owner controls it, so it is not trusted. `rows` and `transaction` serve pages and forms,
 * with at most half of the connections; during a flood of forms the others remain for `tokens`.
 */
export interface Database extends Statements {
  /** Statements for requests with a valid token or code, and for sweeps. */
  readonly tokens: Statements;
  /** Switches to another address of the database. */
  moveTo(address: DatabaseAddress, trust: string): void;
  close(): Promise<void>;
}

export type Rows = <R = Record<string, unknown>>(sql: string, values?: readonly unknown[]) => Promise<R[]>;

/** The database does not accept connections. */
export class DatabaseUnavailable extends Error {
  override readonly name = "DatabaseUnavailable";
}

/** The database is overloaded: too many statements wait. */
export class DatabaseBusy extends DatabaseUnavailable {}

const maxConnections = 4;
const maxFormsInFlight = 2;
const idleTimeoutMs = 60_000;
const connectTimeoutMs = 2_000;
/** Timeout of the wait for a connection, over all attempts. */
const waitTimeoutMs = 5_000;
const retryDelayMs = 150;
/** At most 200 statements of each kind wait; others are refused. */
const waiting: SemaphoreOptions = {
  waitingMax: 200,
  refusal: (reason) =>
    new DatabaseBusy(reason === "queue_full" ? "too many statements wait" : "no free connection in time"),
};

/** Limits of an app's statements, in addition to the settings of every platform session. */
const limits = {
  statement_timeout: "5000",
  lock_timeout: "3000",
  idle_in_transaction_session_timeout: "10000",
  // Each statement finds few rows by an index, regardless of the statistics of a table that anyone can fill.
  enable_seqscan: "off",
  enable_bitmapscan: "off",
};

/** Names of prepared statements; their number is bounded by the code. */
const names = new Map<string, string>();

function nameOf(sql: string): string {
  const existing = names.get(sql);
  if (existing !== undefined) return existing;
  const name = `s${names.size}`;
  names.set(sql, name);
  return name;
}

export function createDatabase(first: DatabaseAddress, firstTrust: string): Database {
  let pool = poolOf(first, firstTrust);
  let isClosed = false;

  /** Retries during a failover until the new primary is known. */
  async function connect(until: number): Promise<pg.PoolClient> {
    for (;;) {
      try {
        return await pool.connect();
      } catch (cause) {
        if (isClosed) throw new DatabaseUnavailable("closed", { cause });
        if (performance.now() > until) throw new DatabaseUnavailable("no connection", { cause });
      }
      await delay(retryDelayMs);
    }
  }

  async function withClient<T>(work: (rows: Rows) => Promise<T>, until: number): Promise<T> {
    const client = await connect(until);
    let failure: unknown;
    try {
      const rows: Rows = async <R>(sql: string, values?: readonly unknown[]) =>
        (await client.query(values === undefined ? sql : { name: nameOf(sql), text: sql, values: [...values] }))
          .rows as R[];
      return await work(rows);
    } catch (error) {
      failure = error;
      throw isConnectionError(error) ? new DatabaseUnavailable("the connection broke", { cause: error }) : error;
    } finally {
      client.release(failure !== undefined);
    }
  }

  const statementsOf = (semaphore: Semaphore): Statements => {
    const use = <T>(work: (rows: Rows) => Promise<T>) => {
      // One deadline for both waits: for a permit and for a connection.
      const until = performance.now() + waitTimeoutMs;
      return semaphore.run(() => withClient(work, until), { waitMs: waitTimeoutMs });
    };
    return {
      rows: (sql, values) => use((rows) => rows(sql, values)),
      transaction: (work) =>
        use(async (rows) => {
          await rows("BEGIN");
          const result = await work(rows);
          await rows("COMMIT");
          return result;
        }),
    };
  };

  return {
    ...statementsOf(createSemaphore(maxFormsInFlight, waiting)),
    tokens: statementsOf(createSemaphore(maxConnections, waiting)),
    moveTo(address, trust) {
      const before = pool;
      pool = poolOf(address, trust);
      before.end().catch(() => undefined);
    },
    async close() {
      isClosed = true;
      await pool.end().catch(() => undefined);
    },
  };
}

function poolOf({ address, port, name, role, password, hostname }: DatabaseAddress, trust: string): pg.Pool {
  const pool = new pg.Pool({
    // pg would read an empty host as this machine.
    host: address === "" ? "address.invalid" : address,
    port,
    database: name,
    user: role,
    password,
    max: maxConnections,
    idleTimeoutMillis: idleTimeoutMs,
    connectionTimeoutMillis: connectTimeoutMs,
    application_name: "holdfast issuer",
    options: startupOptions(limits),
    ssl: { ca: trust, servername: hostname, minVersion: "TLSv1.2" },
  });
  // A broken idle connection is replaced on the next request.
  pool.on("error", () => undefined);
  return pool;
}

function isConnectionError(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const isCut = code === "" && error instanceof Error && error.message.startsWith("Connection terminated");
  return code.startsWith("08") || code.startsWith("57P") || code === "25006" || /^E[A-Z]+$/.test(code) || isCut;
}
