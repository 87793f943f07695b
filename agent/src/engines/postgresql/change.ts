import type { Instance } from "../engine-driver.ts";
import type { ChangeOptions } from "../contents-facets.ts";
import { refusalOf } from "./refusal.ts";
import { type Session, type SessionOptions, withSession } from "./session.ts";

/** Bounds of the sessions of a change: it may wait for locks of users for as long as it may take at all. */
export function boundsOf({ withinMs = 30_000 }: ChangeOptions = {}): SessionOptions {
  return { statementMs: withinMs, lockMs: withinMs };
}

/**
 * As `withSession`, for a change of what the name says: one at a time. What an earlier call has left in the engine, because
 * its agent was killed or gave up, is over before this one looks. Throws EngineRefused or EngineBusy for the engine's no.
 */
export async function withTurn<T>(
  instance: Instance,
  name: string,
  signal: AbortSignal,
  options: ChangeOptions | undefined,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const inTurn = async (session: Session) => {
    await session.rows("SELECT pg_advisory_lock(hashtextextended($1, 0))", [name]);
    return work(session);
  };
  try {
    return await withSession(instance, signal, inTurn, boundsOf(options));
  } catch (error) {
    throw refusalOf(error);
  }
}
