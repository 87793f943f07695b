import { createLane } from "@holdfast/common/lane.ts";
import type { Instance } from "../../engine-driver.ts";
import { EngineBusy } from "../../engine-errors.ts";
import { listDatabases } from "../database-list.ts";
import { platform } from "../layout.ts";
import { withSession } from "../session.ts";
import { migrate, versionOf } from "./migrate.ts";
import type { QueueSessions } from "./queue-sessions.ts";
import { runTask } from "./run-task.ts";
import { sweep } from "./sweep.ts";
import { openTasks, type QueueTask } from "./task.ts";

/** What queues need done although nobody asks for it. */
export interface QueueUpkeep {
  /** Names of the databases with queues, each with the schema of this release; all are looked through now and then. */
  databases(instance: Instance, signal: AbortSignal, options?: { anew: boolean }): Promise<readonly string[]>;
  /** Those of the last time that all were looked through. */
  known(instance: Instance): readonly string[];
  /** The database has queues from now on. */
  note(instance: Instance, database: string): void;
  /** Sweeps all queues and goes on with the tasks that are open. */
  keep(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Works on a task of a database until it is over, in the background; nothing begins when that is under way. */
  begin(instance: Instance, database: string, task: QueueTask, signal: AbortSignal): void;
}

const lookThroughEveryMs = 10 * 60_000;

export function createQueueUpkeep(sessions: QueueSessions): QueueUpkeep {
  /** One at a time, so that requests have the other session. */
  const lane = createLane(1);
  const underWay = new Set<string>();
  let known: { readonly engine: string; readonly names: Set<string>; readonly at: number } | undefined;

  const engineOf = ({ spec, paths }: Instance) => `${spec.serviceId} ${paths.run}`;

  async function lookThrough(instance: Instance, signal: AbortSignal): Promise<Set<string>> {
    const { ready, templates } = await sessions.alone(() => withSession(instance, signal, listDatabases));
    const names = new Set<string>();
    for (const name of ready.filter((each) => each !== platform && !templates.includes(each))) {
      // A database that takes no sessions, or is dropped meanwhile, does not hold the others up.
      const has = await sessions.alone(() => bringUp(instance, name, signal)).catch(() => false);
      signal.throwIfAborted();
      if (has) names.add(name);
    }
    known = { engine: engineOf(instance), names, at: performance.now() };
    return names;
  }

  function bringUp(instance: Instance, database: string, signal: AbortSignal): Promise<boolean> {
    const { serviceId } = instance.spec;
    return withSession(
      instance,
      signal,
      async (session) => {
        if ((await versionOf(session)) === 0) return false;
        // A migration that had to wait too long is tried again at the next look; queues go on as they are.
        await migrate(session, { serviceId }).catch((error: unknown) => {
          if (!(error instanceof EngineBusy)) throw error;
        });
        return true;
      },
      { database },
    );
  }

  const upkeep: QueueUpkeep = {
    async databases(instance, signal, { anew } = { anew: false }) {
      const isOld = known?.engine !== engineOf(instance) || performance.now() - known.at > lookThroughEveryMs || anew;
      return [...(isOld || known === undefined ? await lookThrough(instance, signal) : known.names)];
    },
    known: (instance) => (known?.engine === engineOf(instance) ? [...known.names] : []),
    note(instance, database) {
      if (known?.engine === engineOf(instance)) known.names.add(database);
    },
    keep: (instance, signal) =>
      lane.run(async () => {
        for (const database of await upkeep.databases(instance, signal)) {
          let open: QueueTask[] = [];
          try {
            while ((await sessions.use(instance, database, signal, sweep)).hasMore) signal.throwIfAborted();
            open = await sessions.use(instance, database, signal, openTasks);
          } catch (error) {
            signal.throwIfAborted();
            // Of one database; the next look finds out whether it is still there.
            known = undefined;
            if (error instanceof EngineBusy) continue;
            throw error;
          }
          for (const task of open) upkeep.begin(instance, database, task, signal);
        }
      }),
    begin(instance, database, task, signal) {
      const name = `${database} ${task.id}`;
      if (underWay.has(name)) return;
      underWay.add(name);
      lane
        .run(() => sessions.use(instance, database, signal, (session) => runTask(session, task, signal)))
        // The task stays open, and the next look goes on with it.
        .catch(() => undefined)
        .finally(() => underWay.delete(name));
    },
  };
  return upkeep;
}
