import { isPinned } from "@holdfast/common/postgresql/session-settings.ts";
import type { Instance } from "../engine-driver.ts";
import { platform } from "./layout.ts";
import { escapeIdentifier, escapeLiteral, platformClient, superuserSettings } from "./platform-client.ts";

/** A connection of the platform: superuser over the Unix socket. */
export interface Session {
  /** One statement; several without values. Rows of the last one. */
  rows<R = Record<string, unknown>>(sql: string, values?: readonly unknown[]): Promise<R[]>;
}

export interface SessionOptions {
  readonly database?: string;
  /** Bound of one statement in milliseconds. */
  readonly statementMs?: number;
  /** How long one may wait for a lock; half of that when not given. */
  readonly lockMs?: number;
  /** Whose rights it has; the superuser's when not given. */
  readonly role?: string;
  /** Its commits wait for no replica. */
  readonly isLocal?: true;
}

/** A session that stays open until it is closed. */
export interface OpenSession extends Session {
  /** Why it is of no use any more; undefined while it is. */
  readonly broken: Error | undefined;
  close(): void;
  /** Ends it at once, and its statement soon after. */
  abort(): void;
}

/** Settings of which a session of ours shows its own value, not the one that users get. */
export function isOwn(setting: string): boolean {
  return setting in superuserSettings || isPinned(setting);
}

/** Opens a session, runs the work and closes it again; an abort ends the connection at once, and its statement soon after. */
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

/** Opens a session; an abort before it is open throws. */
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
  // The client has no cancel of its own: a socket that is gone fails whatever waits on it.
  const abort = () => client.connection.stream.destroy(new Error("aborted"));
  // Closing is told, not awaited: the engine's end of it costs the caller nothing.
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

/** SQLSTATE of an error of the engine, or the code of a failed connection. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** What the engine said, or any other error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export const identifier = (name: string): string => escapeIdentifier(name);
export const literal = (text: string): string => escapeLiteral(text);
