import { isPinned } from "@holdfast/common/postgresql/session-settings.ts";
import type { ChangeOptions } from "../contents-facets.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineBusy, EngineRefused } from "../engine-errors.ts";
import { platform } from "./layout.ts";
import { escapeIdentifier, escapeLiteral, platformClient, superuserSettings } from "./platform-client.ts";

/** A connection of the platform: superuser over the Unix socket. */
export interface Session {
  /** Runs one statement, or several if there are no values. Returns the rows of the last one. */
  rows<R = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<R[]>;
}

interface SessionOptions {
  readonly database?: string;
  /** Statement timeout in milliseconds, 30,000 by default. */
  readonly statementMs?: number;
  /** Lock timeout in milliseconds; half of `statementMs` by default. */
  readonly lockMs?: number;
  /** Role whose privileges it has; the superuser's by default. */
  readonly role?: string;
  /** True if its commits do not wait for replicas. */
  readonly isLocal?: true;
}

/** A session that remains open until it is closed. */
export interface OpenSession extends Session {
  /** Error that ended the session; undefined while it is usable. */
  readonly broken: Error | undefined;
  close(): void;
  /** Closes the connection without waiting, after which the engine ends the statement. */
  abort(): void;
}

/**
 * Limit of the temporary files of a platform session: a sixteenth of the disk, 64 MiB to 1 GiB. A large catalog of
 * users then fails a statement of the platform instead of filling the disk.
 */
function temporaryFilesMib({ spec }: Instance): number {
  const sixteenth = Math.floor(Number(spec.storageBytes) / 16 / 1_048_576);
  return Math.min(Math.max(sixteenth, 64), 1_024);
}

/** True for settings that the platform's sessions override. */
export function isOverridden(setting: string): boolean {
  return Object.hasOwn(superuserSettings, setting) || isPinned(setting);
}

/**
 * Opens a session, runs the work and closes the session. An abort closes the connection without waiting, after which
 * the engine ends the statement.
 */
export async function withSession<T>(
  instance: Instance,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
  options: SessionOptions = {},
): Promise<T> {
  signal.throwIfAborted();
  let session: OpenSession | undefined;
  const abort = () => session?.abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    session = await openSession(instance, options, signal);
    return await work(session);
  } catch (error) {
    signal.throwIfAborted();
    throw session?.broken ?? error;
  } finally {
    signal.removeEventListener("abort", abort);
    session?.close();
  }
}

/** Opens a session. Throws if the signal aborts before it is open. */
export async function openSession(
  instance: Instance,
  {
    database = platform,
    statementMs = 30_000,
    lockMs = Math.ceil(statementMs / 2),
    role = "none",
    isLocal,
  }: SessionOptions,
  signal: AbortSignal,
): Promise<OpenSession> {
  const limits = {
    temp_file_limit: `${temporaryFilesMib(instance)}MB`,
    statement_timeout: String(statementMs),
    lock_timeout: String(lockMs),
    role,
    ...(isLocal && { synchronous_commit: "local" }),
  };
  const client = platformClient(instance, { user: platform, database, settings: { ...superuserSettings, ...limits } });
  let broken: Error | undefined;
  client.on("error", (error) => {
    broken = error;
  });
  // pg has no cancellation: destroying the socket rejects all pending queries.
  const abort = () => client.connection.stream.destroy(new Error("aborted"));
  // Closing is not awaited, so that the caller does not wait for the engine.
  const close = () => {
    client.end().catch(() => client.connection.stream.destroy());
  };
  signal.addEventListener("abort", abort, { once: true });
  try {
    await client.connect();
  } catch (error) {
    close();
    throw broken ?? error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
  return {
    async rows<R>(sql: string, values?: readonly unknown[]): Promise<R[]> {
      const result: unknown = await (values === undefined ? client.query(sql) : client.query(sql, [...values]));
      const last = Array.isArray(result) ? result.at(-1) : result;
      return (last as { rows: R[] }).rows;
    },
    get broken() {
      return broken;
    },
    close,
    abort,
  };
}

/** SQLSTATE of an engine's error, or the code of a failed connection; empty for other errors. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Message of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export const identifier = (name: string): string => escapeIdentifier(name);
export const literal = (text: string): string => escapeLiteral(text);

/** SQLSTATE classes that mean the request was refused, not that the platform failed. */
const refusals = ["0A", "22", "23", "2B", "3D", "42", "55"];

/** lock_not_available and query_canceled: the engine ended the statement at a timeout and rolled it back. */
const busy = ["55P03", "57014"];

/** Converts a refusal of the engine to EngineRefused or EngineBusy; returns other errors as they are. */
export function refusalOf(error: unknown): unknown {
  if (busy.includes(codeOf(error))) return new EngineBusy(messageOf(error), { cause: error });
  return refusals.includes(codeOf(error).slice(0, 2)) ? new EngineRefused(messageOf(error), { cause: error }) : error;
}

/** Timeouts of a change's sessions: waiting for users' locks may take all of its time. */
export function timeoutsOf({ withinMs = 30_000 }: ChangeOptions = {}): SessionOptions {
  return { statementMs: withinMs, lockMs: withinMs };
}

/**
 * Runs `withSession` for a change of the named object, one change at a time by an advisory lock. A statement that an
 * earlier call left running, because its agent was killed or gave up, ends before the lock is granted. Throws
 * EngineRefused or EngineBusy if the engine refuses.
 */
export async function withAdvisoryLock<T>(
  instance: Instance,
  name: string,
  signal: AbortSignal,
  options: ChangeOptions | undefined,
  work: (session: Session) => Promise<T>,
  database?: string,
): Promise<T> {
  const locked = async (session: Session) => {
    await session.rows("SELECT pg_advisory_lock(hashtextextended($1, 0))", [name]);
    return work(session);
  };
  try {
    return await withSession(instance, signal, locked, { ...timeoutsOf(options), ...(database && { database }) });
  } catch (error) {
    throw refusalOf(error);
  }
}

/** Runs the work in one transaction and rolls it back if it throws. */
export async function inTransaction<T>(session: Session, work: () => Promise<T>): Promise<T> {
  await session.rows("BEGIN");
  try {
    const result = await work();
    await session.rows("COMMIT");
    return result;
  } catch (error) {
    await session.rows("ROLLBACK").catch(() => undefined);
    throw error;
  }
}
