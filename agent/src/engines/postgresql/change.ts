import type { ChangeOptions, Instance } from "../engine-driver.ts";
import { type Session, type SessionOptions, withSession } from "./session.ts";

/** Bounds of the sessions of a change: it may wait for locks of users for as long as it may take at all. */
export function boundsOf({ withinMs = 30_000 }: ChangeOptions = {}): SessionOptions {
  return { statementMs: withinMs, lockMs: withinMs };
}

/**
 * As `withSession`, for a change of what the name says: one at a time. What an earlier call has left in the engine, because
 * its agent was killed or gave up, is over before this one looks.
 */
export function withTurn<T>(
  instance: Instance,
  name: string,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
  options?: ChangeOptions,
): Promise<T> {
  return withSession(
    instance,
    signal,
    async (session) => {
      await session.rows("SELECT pg_advisory_lock(hashtextextended($1, 0))", [name]);
      return work(session);
    },
    boundsOf(options),
  );
}
