import { createLane } from "@holdfast/common/lane.ts";
import type { Instance } from "../../engine-driver.ts";
import { type OpenSession, openSession, type Session } from "../session.ts";
import { agentRole } from "./schema/names.ts";

/** The sessions that work on queues: two at a time, out of the few that the engine reserves for the platform. */
export interface QueueSessions {
  /**
   * Runs the work in a session of the database that has the rights of queues and nothing more. One that was used is kept for the
   * next work, and closed when there is none for 5 s.
   */
  use<T>(instance: Instance, database: string, signal: AbortSignal, work: (session: Session) => Promise<T>): Promise<T>;
  /** Runs work that opens a session of its own. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  /** Closes those that are idle and ends those at work at once; the next work opens new ones. */
  letGo(): void;
}

const atOnce = 2;
const idleMs = 5_000;
const statementMs = 10_000;

interface Idle {
  readonly key: string;
  readonly session: OpenSession;
  readonly timer: NodeJS.Timeout;
}

export function createQueueSessions(): QueueSessions {
  const lane = createLane(atOnce);
  let idle: Idle[] = [];
  const working = new Set<OpenSession>();

  function take(key: string): OpenSession | undefined {
    const found = idle.find((one) => one.key === key && one.session.broken === undefined);
    if (found === undefined) return undefined;
    idle = idle.filter((one) => one !== found);
    clearTimeout(found.timer);
    return found.session;
  }

  /** Sessions that work and those that are idle are never more than two together. */
  function makeRoom(): void {
    for (const { session, timer } of idle.splice(0)) {
      clearTimeout(timer);
      session.close();
    }
  }

  function keep(key: string, session: OpenSession): void {
    const timer = setTimeout(() => {
      idle = idle.filter((one) => one.session !== session);
      session.close();
    }, idleMs).unref();
    idle.push({ key, session, timer });
  }

  return {
    use: (instance, database, signal, work) =>
      lane.run(async () => {
        signal.throwIfAborted();
        const key = `${instance.paths.run} ${instance.spec.port} ${database}`;
        let session = take(key);
        if (session === undefined) {
          makeRoom();
          session = await openSession(instance, { database, statementMs, role: agentRole }, signal);
        }
        const { abort } = session;
        working.add(session);
        signal.addEventListener("abort", abort, { once: true });
        let isWell = false;
        try {
          const result = await work(session);
          isWell = session.broken === undefined && !signal.aborted;
          return result;
        } catch (error) {
          signal.throwIfAborted();
          // The engine's own no leaves the session as it was; what has no SQLSTATE may be its end.
          isWell = session.broken === undefined && isSaid(error);
          throw session.broken ?? error;
        } finally {
          signal.removeEventListener("abort", abort);
          working.delete(session);
          if (isWell) keep(key, session);
          else session.close();
        }
      }),
    alone: (work) =>
      lane.run(() => {
        makeRoom();
        return work();
      }),
    letGo() {
      makeRoom();
      for (const session of working) session.abort();
    },
  };
}

/** Is it the answer of an engine that goes on? */
function isSaid(error: unknown): boolean {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error && "severity" in cause && cause.severity === "ERROR";
}
