import { createHash } from "node:crypto";
import { createConnection, type Connection } from "mysql2/promise";
import { readEngineFile } from "../../os/engine-file.ts";
import type { ChangeOptions } from "../contents-facets.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineBusy, EngineRefused } from "../engine-errors.ts";
import { engineSocket, platform, secretFile } from "./layout.ts";

/** A connection of the platform over the Unix socket. */
export interface Session {
  /** Runs one statement. `?` in it are the values, quoted by the client. */
  rows<R = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<R[]>;
}

export interface SessionOptions {
  /** Limit of a lock's wait and of a SELECT in milliseconds, 30,000 by default. */
  readonly withinMs?: number;
  /** True if the session's changes are neither replicated nor wait for a replica (`sql_log_bin`). */
  readonly isLocal?: boolean;
}

/** A session that remains open until it is closed. */
export interface OpenSession extends Session {
  /** Closes the connection without waiting for a running statement, which the engine ends later. */
  close(): void;
}

/**
 * Opens a session, runs the work and closes the session; an abort closes the connection without waiting. A statement
 * that runs then continues until it ends or a lock's time limit passes.
 */
export async function withSession<T>(
  instance: Instance,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
  options: SessionOptions = {},
): Promise<T> {
  const session = await openSession(instance, signal, options);
  const aborted = Promise.withResolvers<never>();
  const abort = () => {
    session.close();
    aborted.reject(signal.reason);
  };
  // The work may have ended before.
  aborted.promise.catch(() => undefined);
  signal.addEventListener("abort", abort, { once: true });
  try {
    const result = work(session);
    // After an abort nothing reads its failure.
    result.catch(() => undefined);
    return await Promise.race([result, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
    session.close();
  }
}

/** Opens a session. Throws if the signal aborts before it is open. */
export async function openSession(
  instance: Instance,
  signal: AbortSignal,
  { withinMs = 30_000, isLocal = false }: SessionOptions = {},
): Promise<OpenSession> {
  signal.throwIfAborted();
  const options = {
    socketPath: engineSocket(instance),
    user: platform,
    password: await readEngineFile(secretFile(instance)),
    supportBigNumbers: true,
    bigNumberStrings: true,
    dateStrings: true,
    charset: "utf8mb4_bin",
  };
  const opening = createConnection(options);
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  let connection: Connection;
  try {
    connection = await Promise.race([opening, aborted.promise]);
  } catch (error) {
    opening.then(
      (late) => late.destroy(),
      () => undefined,
    );
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
  forwardErrors(connection);
  const rows = queriesOf(connection);
  try {
    await rows(settingsSql(withinMs, isLocal));
  } catch (error) {
    connection.destroy();
    throw error;
  }
  return { rows, close: () => connection.destroy() };
}

/** A failure of the connection also fails its statements, so its own event needs no handler. */
export function forwardErrors(connection: Connection): void {
  connection.on("error", () => undefined);
}

export function queriesOf(connection: Connection): Session["rows"] {
  return async <R>(sql: string, values?: readonly unknown[]) => {
    const [result] = await connection.query(sql, values === undefined ? undefined : [...values]);
    return Array.isArray(result) ? (result as R[]) : [];
  };
}

/** Seconds after which a statement of the agent counts as slow: the maximum, so that users' slow log has none. */
export const neverSlow = 31_536_000;

/** Statement with the settings of a session of the platform, which override the defaults that users can set. */
function settingsSql(withinMs: number, isLocal: boolean): string {
  const seconds = Math.max(Math.ceil(withinMs / 1_000), 1);
  const values: Readonly<Record<string, string | number>> = {
    // Quoting by the client is right in this mode only.
    sql_mode: "'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
    time_zone: "'+00:00'",
    autocommit: 1,
    completion_type: "'NO_CHAIN'",
    transaction_isolation: "'READ-COMMITTED'",
    transaction_read_only: 0,
    max_execution_time: withinMs,
    lock_wait_timeout: seconds,
    innodb_lock_wait_timeout: seconds,
    group_concat_max_len: 1_048_576,
    long_query_time: neverSlow,
    sql_require_primary_key: 0,
    ...(isLocal && { sql_log_bin: 0 }),
  };
  return `SET ${Object.entries(values)
    .map(([name, value]) => `SESSION ${name} = ${value}`)
    .join(", ")}`;
}

/** Name of an engine's error such as `ER_DUP_ENTRY`, or the code of a failed connection; empty for other errors. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Number of an engine's error; 0 for other errors. */
export function numberOf(error: unknown): number {
  return error instanceof Error && "errno" in error && "sqlState" in error ? Number(error.errno) : 0;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A name in a statement. */
export const identifier = (name: string): string => `\`${name.replaceAll("`", "``")}\``;
/** Account of users, who may come from any address that the front admits. */
export const account = (name: string): string => `${literal(name)}@'%'`;
/** Quotes a string for a statement in the SQL mode of the platform's sessions. */
export function literal(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}

/** The engine gave up waiting for a lock, or was interrupted: lock_wait_timeout, max_execution_time, KILL, GET_LOCK. */
const busy = [1205, 1317, 3024, 3058];

/** Converts a refusal of the engine to EngineRefused or EngineBusy; returns other errors as they are. */
function refusalOf(error: unknown): unknown {
  const number = numberOf(error);
  if (busy.includes(number)) return new EngineBusy(messageOf(error), { cause: error });
  const state = error instanceof Error && "sqlState" in error ? String(error.sqlState) : "";
  return number !== 0 && /^(0A|22|23|28|3D|42)/.test(state)
    ? new EngineRefused(messageOf(error), { cause: error })
    : error;
}

/**
 * Runs `withSession` for a change of the named object, one change at a time by a lock of the engine. A statement that
 * an earlier call left running, because its agent was killed or gave up, ends before the lock is granted. Throws
 * EngineRefused or EngineBusy if the engine refuses.
 */
export async function withNamedLock<T>(
  instance: Instance,
  name: string,
  signal: AbortSignal,
  { withinMs = 30_000 }: ChangeOptions = {},
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const lock = `${platform} ${createHash("sha256").update(name).digest("hex").slice(0, 40)}`;
  const locked = async (session: Session) => {
    const [row] = await session.rows<{ granted: string | null }>("SELECT GET_LOCK(?, ?) AS granted", [
      lock,
      Math.ceil(withinMs / 1_000),
    ]);
    if (Number(row?.granted) !== 1) throw new EngineBusy(`Another change of ${name} is running.`);
    return work(session);
  };
  try {
    return await withSession(instance, signal, locked, { withinMs });
  } catch (error) {
    throw refusalOf(error);
  }
}
