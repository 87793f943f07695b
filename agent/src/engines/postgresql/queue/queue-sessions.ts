import { createSemaphore } from "@holdfast/common/concurrency/semaphore.ts";
import type { Instance } from "../../engine-driver.ts";
import { type OpenSession, openSession, type Session } from "../session.ts";
import { agentRole } from "./schema/names.ts";

/** Pool of sessions for queues: at most two, of the few connections that are reserved for the platform. */
export interface QueueSessions {
  /**
   * Runs the work in a session of the database that has the privileges of queues only. The session is reused, and
   * closed after 5 s without work.
   */
  use<T>(instance: Instance, database: string, signal: AbortSignal, work: (session: Session) => Promise<T>): Promise<T>;
  /** Runs work that opens its own session; the session counts toward the same limit. */
  withSlot<T>(work: () => Promise<T>): Promise<T>;
  /** Closes idle sessions and aborts busy ones; later work opens new ones. */
  closeAll(): void;
}

const maxSessions = 2;
const idleMs = 5_000;
const statementMs = 10_000;

interface Idle {
  readonly key: string;
  readonly session: OpenSession;
  readonly timer: NodeJS.Timeout;
}

export function createQueueSessions(): QueueSessions {
  const lane = createSemaphore(maxSessions);
  let idle: Idle[] = [];
  const working = new Set<OpenSession>();

  function take(key: string): OpenSession | undefined {
    const found = idle.find((entry) => entry.key === key && entry.session.broken === undefined);
    if (found === undefined) return undefined;
    idle = idle.filter((entry) => entry !== found);
    clearTimeout(found.timer);
    return found.session;
  }

  /** Closes idle sessions, so that idle and busy ones together never exceed two. */
  function closeIdle(): void {
    for (const { session, timer } of idle.splice(0)) {
      clearTimeout(timer);
      session.close();
    }
  }

  function park(key: string, session: OpenSession): void {
    const timer = setTimeout(() => {
      idle = idle.filter((entry) => entry.session !== session);
      session.close();
    }, idleMs).unref();
    idle.push({ key, session, timer });
  }

  return {
    use: (instance, database, signal, work) =>
      lane.run(
        async () => {
          const key = `${instance.paths.run} ${instance.spec.port} ${database}`;
          let session = take(key);
          if (session === undefined) {
            closeIdle();
            session = await openSession(instance, { database, statementMs, role: agentRole }, signal);
          }
          const { abort } = session;
          working.add(session);
          signal.addEventListener("abort", abort, { once: true });
          let isUsable = false;
          try {
            const result = await work(session);
            isUsable = session.broken === undefined && !signal.aborted;
            return result;
          } catch (error) {
            signal.throwIfAborted();
            // After a refusal by the engine the session is usable; an error without SQLSTATE may mean that it ended.
            isUsable = session.broken === undefined && isErrorReply(error);
            throw session.broken ?? error;
          } finally {
            signal.removeEventListener("abort", abort);
            working.delete(session);
            if (isUsable) park(key, session);
            else session.close();
          }
        },
        { signal },
      ),
    withSlot: (work) =>
      lane.run(() => {
        closeIdle();
        return work();
      }),
    closeAll() {
      closeIdle();
      for (const session of working) session.abort();
    },
  };
}

/** True for an error reply (severity ERROR), after which the session remains usable. */
function isErrorReply(error: unknown): boolean {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error && "severity" in cause && cause.severity === "ERROR";
}
