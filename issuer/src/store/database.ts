import { setTimeout as delay } from "node:timers/promises";
import type { Database as DatabaseAddress } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { startupOptions } from "@holdfast/common/postgresql/session-settings.ts";
import pg from "pg";

export interface Statements {
  /** One statement. Throws DatabaseAway when there is no connection within 5 s. */
  rows<R = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<R[]>;
  /** Statements in one transaction. */
  transaction<T>(work: (rows: Rows) => Promise<T>): Promise<T>;
}

/**
 * The database of one app: its owner's, and not to be trusted. Its own statements are those of pages and forms, which have half of
 * the connections at most: a flood of them leaves the others to tokens.
 */
export interface Database extends Statements {
  /** Of clients that have a token or a code of ours, and of upkeep. */
  readonly tokens: Statements;
  /** From now on it is there. */
  moveTo(address: DatabaseAddress, trust: string): void;
  close(): Promise<void>;
}

export type Rows = <R = Record<string, unknown>>(sql: string, values?: readonly unknown[]) => Promise<R[]>;

/** Nobody can be signed in until it is back. */
export class DatabaseAway extends Error {
  override readonly name = "DatabaseAway";
}

/** More is asked of it than it does in time; the requests that wait say no more than that. */
export class DatabaseBusy extends DatabaseAway {}

const connectionsMax = 4;
const formsAtOnce = 2;
/** Statements of pages and forms, and those of tokens, that wait for their turn; past it they are refused at once. */
const waitingMax = 200;
const idleMs = 60_000;
const connectMs = 2_000;
const waitMs = 5_000;
const retryMs = 150;

/** The limits of what one call of an app takes, beside the settings of every session of the platform. */
const limits = {
  statement_timeout: "5000",
  lock_timeout: "3000",
  idle_in_transaction_session_timeout: "10000",
  // Each statement finds few rows by an index, and stops at its limit, whatever statistics say of a table that strangers fill.
  enable_seqscan: "off",
  enable_bitmapscan: "off",
};

/** Names of statements that connections prepare once: as many as this code has. */
const names = new Map<string, string>();

function nameOf(sql: string): string {
  const known = names.get(sql);
  if (known !== undefined) return known;
  const name = `s${names.size}`;
  names.set(sql, name);
  return name;
}

export function createDatabase(first: DatabaseAddress, firstTrust: string): Database {
  let pool = poolOf(first, firstTrust);
  let isClosed = false;

  /** While the primary changes, one that is asked for comes when the new one is known. */
  async function connect(until: number): Promise<pg.PoolClient> {
    for (;;) {
      try {
        return await pool.connect();
      } catch (cause) {
        if (isClosed) throw new DatabaseAway("closed", { cause });
        if (performance.now() > until) throw new DatabaseAway("no connection", { cause });
      }
      await delay(retryMs);
    }
  }

  async function useNow<T>(work: (rows: Rows) => Promise<T>, until: number): Promise<T> {
    const client = await connect(until);
    let failure: unknown;
    try {
      const rows: Rows = async <R>(sql: string, values?: readonly unknown[]) =>
        (await client.query(values === undefined ? sql : { name: nameOf(sql), text: sql, values: [...values] }))
          .rows as R[];
      return await work(rows);
    } catch (error) {
      failure = error;
      throw isConnection(error) ? new DatabaseAway("the connection broke", { cause: error }) : error;
    } finally {
      client.release(failure !== undefined);
    }
  }

  const statementsOf = (lane: Lane): Statements => {
    const use = <T>(work: (rows: Rows) => Promise<T>) => {
      // The wait for a turn and that for a connection are one.
      const until = performance.now() + waitMs;
      return lane(() => useNow(work, until));
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
    ...statementsOf(createLane(formsAtOnce)),
    tokens: statementsOf(createLane(connectionsMax)),
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

type Lane = <T>(work: () => Promise<T>) => Promise<T>;

/** Bounds work that runs at a time; the rest waits, first come first served. Throws DatabaseAway past the longest wait or line. */
function createLane(atOnce: number): Lane {
  let free = atOnce;
  const waiting = new Set<() => void>();

  async function turn(): Promise<void> {
    if (free > 0) {
      free -= 1;
      return;
    }
    if (waiting.size >= waitingMax) throw new DatabaseBusy("too many statements wait");
    await new Promise<void>((resolve, reject) => {
      const late = setTimeout(() => {
        waiting.delete(begin);
        reject(new DatabaseBusy("no turn in time"));
      }, waitMs);
      const begin = () => {
        clearTimeout(late);
        resolve();
      };
      waiting.add(begin);
    });
  }

  function next(): void {
    const [first] = waiting;
    if (first === undefined) free += 1;
    else {
      waiting.delete(first);
      first();
    }
  }

  return async (work) => {
    await turn();
    try {
      return await work();
    } finally {
      next();
    }
  };
}

function poolOf({ address, port, name, role, password, hostname }: DatabaseAddress, trust: string): pg.Pool {
  const pool = new pg.Pool({
    // Without one it would be this machine.
    host: address === "" ? "address.invalid" : address,
    port,
    database: name,
    user: role,
    password,
    max: connectionsMax,
    idleTimeoutMillis: idleMs,
    connectionTimeoutMillis: connectMs,
    application_name: "holdfast issuer",
    options: startupOptions(limits),
    ssl: { ca: trust, servername: hostname, minVersion: "TLSv1.2" },
  });
  // A connection that idles and breaks is replaced by the next that is asked for.
  pool.on("error", () => undefined);
  return pool;
}

function isConnection(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const isCut = code === "" && error instanceof Error && error.message.startsWith("Connection terminated");
  return code.startsWith("08") || code.startsWith("57P") || code === "25006" || /^E[A-Z]+$/.test(code) || isCut;
}
