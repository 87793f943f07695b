import { createMutex } from "@holdfast/common/concurrency/mutex.ts";
import type { Instance } from "../../engine-driver.ts";
import { EngineBusy } from "../../engine-errors.ts";
import { listDatabases } from "../database-list.ts";
import { platform } from "../layout.ts";
import { type Session, withSession } from "../session.ts";
import { migrate, schemaVersionOf } from "./migrate.ts";
import { mapRefusals } from "./queue-refused.ts";
import type { QueueSessions } from "./queue-sessions.ts";
import { runTask } from "./run-task.ts";
import { schema } from "./schema/names.ts";
import { openTasks, type QueueTask } from "./task.ts";

/** Periodic maintenance of queues, independent of requests. */
export interface QueueMaintenance {
  /**
   * Names of the databases with queues. All databases are scanned every ten minutes, and their schemas migrated;
   * `rescan` scans now.
   */
  databases(instance: Instance, signal: AbortSignal, options?: { rescan: boolean }): Promise<readonly string[]>;
  /** Result of the last scan. */
  scanned(instance: Instance): readonly string[];
  /** Adds a database that got its first queue. */
  addDatabase(instance: Instance, database: string): void;
  /** Sweeps all queues and resumes their open tasks. */
  maintain(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Starts work on a task in the background, unless it is in progress. */
  begin(instance: Instance, database: string, task: QueueTask, signal: AbortSignal): void;
}

const scanIntervalMs = 10 * 60_000;

export function createQueueMaintenance(sessions: QueueSessions): QueueMaintenance {
  /** Serializes maintenance, so that it occupies only one of the two sessions. */
  const exclusive = createMutex();
  const inFlight = new Set<string>();
  let scanned: { readonly engine: string; readonly names: Set<string>; readonly at: number } | undefined;

  const engineOf = ({ spec, paths }: Instance) => `${spec.serviceId} ${paths.run}`;

  async function scan(instance: Instance, signal: AbortSignal): Promise<Set<string>> {
    const { ready, templates } = await sessions.withSlot(() => withSession(instance, signal, listDatabases));
    const names = new Set<string>();
    for (const name of ready.filter((each) => each !== platform && !templates.includes(each))) {
      // Skip a database that refuses sessions or is being dropped.
      const has = await sessions.withSlot(() => migrateDatabase(instance, name, signal)).catch(() => false);
      signal.throwIfAborted();
      if (has) names.add(name);
    }
    scanned = { engine: engineOf(instance), names, at: performance.now() };
    return names;
  }

  function migrateDatabase(instance: Instance, database: string, signal: AbortSignal): Promise<boolean> {
    const { serviceId } = instance.spec;
    return withSession(
      instance,
      signal,
      async (session) => {
        if ((await schemaVersionOf(session)) === 0) return false;
        // After a lock timeout the next scan retries the migration; the queues work as before.
        await migrate(session, { serviceId }).catch((error: unknown) => {
          if (!(error instanceof EngineBusy)) throw error;
        });
        return true;
      },
      { database },
    );
  }

  const maintenance: QueueMaintenance = {
    async databases(instance, signal, { rescan } = { rescan: false }) {
      const isStale =
        scanned?.engine !== engineOf(instance) || performance.now() - scanned.at > scanIntervalMs || rescan;
      return [...(isStale || scanned === undefined ? await scan(instance, signal) : scanned.names)];
    },
    scanned: (instance) => (scanned?.engine === engineOf(instance) ? [...scanned.names] : []),
    addDatabase(instance, database) {
      if (scanned?.engine === engineOf(instance)) scanned.names.add(database);
    },
    maintain: (instance, signal) =>
      exclusive(async () => {
        for (const database of await maintenance.databases(instance, signal)) {
          let open: QueueTask[] = [];
          try {
            while ((await sessions.use(instance, database, signal, sweep)).hasMore) signal.throwIfAborted();
            open = await sessions.use(instance, database, signal, openTasks);
          } catch (error) {
            signal.throwIfAborted();
            // The next scan finds out whether the database still exists.
            scanned = undefined;
            if (error instanceof EngineBusy) continue;
            throw error;
          }
          for (const task of open) maintenance.begin(instance, database, task, signal);
        }
      }),
    begin(instance, database, task, signal) {
      const name = `${database} ${task.id}`;
      if (inFlight.has(name)) return;
      inFlight.add(name);
      exclusive(() => sessions.use(instance, database, signal, (session) => runTask(session, task, signal)))
        // The next round resumes the task.
        .catch(() => undefined)
        .finally(() => inFlight.delete(name));
    },
  };
  return maintenance;
}

export interface Sweep {
  /** Number of messages that died or were deleted, and of other expired rows. */
  readonly swept: number;
  /** True if a limit was reached and more remains. */
  readonly hasMore: boolean;
}

const batch = 1000;

/** Statements that delete expired rows, up to a batch each. */
const expiredStatements = [
  `DELETE FROM ${schema}.dead_messages WHERE id IN (SELECT id FROM ${schema}.dead_messages
     WHERE died_at < now() - interval '14 days' ORDER BY died_at LIMIT ${batch} FOR UPDATE SKIP LOCKED)`,
  `DELETE FROM ${schema}.tasks WHERE id IN (SELECT id FROM ${schema}.tasks
     WHERE created_at < now() - interval '24 hours' ORDER BY created_at LIMIT ${batch} FOR UPDATE SKIP LOCKED)`,
  `DELETE FROM ${schema}.queues WHERE purged_at < now() - interval '30 days'`,
];

/** Runs one round of the agent's periodic sweep, for queues whose consumers do not call the claim function. */
export function sweep(session: Session): Promise<Sweep> {
  return mapRefusals(async () => {
    const queues = await session.rows<{ name: string }>(
      `SELECT name FROM ${schema}.queues WHERE deleted_at IS NULL ORDER BY name`,
    );
    let swept = 0;
    let hasMore = false;
    for (const { name } of queues) {
      const [row] = await session.rows<{ n: number }>(`SELECT ${schema}.sweep($1, ${batch}) AS n`, [name]);
      swept += row?.n ?? 0;
      hasMore ||= row?.n === batch;
    }
    for (const statement of expiredStatements) {
      const [row] = await session.rows<{ n: string }>(
        `WITH removed AS (${statement} RETURNING 1) SELECT count(*) AS n FROM removed`,
      );
      swept += Number(row?.n);
      hasMore ||= Number(row?.n) === batch;
    }
    return { swept, hasMore };
  });
}
