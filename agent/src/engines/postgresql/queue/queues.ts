import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { QueueResponse, QueueRequest } from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import { type EngineQueue, EngineQueueSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "../../engine-driver.ts";
import { EngineRefused } from "../../engine-errors.ts";
import { inEachDatabase, isDatabaseUnavailable, listDatabases } from "../database-list.ts";
import { platform } from "../layout.ts";
import { deleteQueue } from "./delete-queue.ts";
import { migrate, schemaVersionOf } from "./migrate.ts";
import { createQueueMaintenance } from "./queue-maintenance.ts";
import { createQueueSessions } from "./queue-sessions.ts";
import { adoptQueue, createQueue, listQueues, updateQueue } from "./stored-queues.ts";
import { runRequest } from "./requests.ts";
import { sampleQueues } from "./stats.ts";
import { readTask } from "./task.ts";
import { codeOf, refusalOf, withSession } from "../session.ts";
import type { QueuesFacet } from "../../queues-facet.ts";

const missingDatabase = "3D000";
/** SQLSTATE of a database without queues: the agent's role, or its schema or privileges, do not exist. */
const missingSchema = ["22023", "42501", "42883", "42P01", "3F000"];

/**
 * Message queues in users' databases.
 *
 * Each database with a queue has the schema `mdb_queue`, whose tables and functions are a public API for SQL
 * (docs/how-to/queues.md); queue/schema/ has them by version, and queue/migrate.ts applies them. Requests over the API
 * run here in two shared sessions (queue-sessions.ts) as a role with access to that schema only. Long requests are
 * tasks, rows of the same database that are resumed after an interruption (run-task.ts). Each minute `maintain` sweeps
 * expired messages and resumes open tasks.
 */
export function createQueues(): QueuesFacet {
  const sessions = createQueueSessions();
  const waiters = createQueueWaiters();
  const maintenance = createQueueMaintenance(sessions);

  async function put(instance: Instance, queue: EngineQueue, adopt: boolean, signal: AbortSignal): Promise<void> {
    const { database, id, name } = queue;
    refusePlatform(database);
    await withSession(
      instance,
      signal,
      async (session) => {
        await migrate(session, { serviceId: instance.spec.serviceId });
        if (adopt) await adoptQueue(session, { name, id });
        const settings = settingsOf(queue);
        await createQueue(session, { id, name, ...settings });
        await updateQueue(session, { id, ...settings });
      },
      { database },
    );
    maintenance.addDatabase(instance, database);
  }

  const databasesOf = (instance: Instance, signal: AbortSignal) =>
    sessions.withSlot(() => withSession(instance, signal, listDatabases));

  /** Repeats a claim until it returns messages, its time has passed or the caller has disconnected. */
  async function call(
    instance: Instance,
    database: string,
    request: QueueRequest,
    signal: AbortSignal,
  ): Promise<QueueResponse> {
    const name = `${database} ${request.queue}`;
    const waitMs = request.request.case === "claim" ? request.request.value.waitSeconds * 1_000 : 0;
    const until = performance.now() + waitMs;
    for (let round = 0; ; round += 1) {
      const result = await sessions.use(instance, database, signal, (session) => runRequest(session, request));
      const remainingMs = until - performance.now();
      const { response } = result;
      const isEmpty = response.case === "messages" && response.value.messages.length === 0;
      if (!isEmpty || remainingMs <= 0) return result;
      await waiters.next(name, round, remainingMs, signal);
    }
  }

  return {
    put: (instance, queue, { adopt }, signal) =>
      mapDatabaseErrors(() => sessions.withSlot(() => put(instance, queue, adopt, signal))),

    async remove(instance, { database, id }, signal) {
      refusePlatform(database);
      try {
        return await mapDatabaseErrors(() =>
          sessions.withSlot(() =>
            withSession(
              instance,
              signal,
              async (session) => {
                if ((await schemaVersionOf(session)) === 0) return { deleted: true, purged: 0 };
                const { state, purged } = await deleteQueue(session, { id });
                return { deleted: state === "deleted", purged };
              },
              { database },
            ),
          ),
        );
      } catch (error) {
        const isLost = async () => (await databasesOf(instance, signal)).invalid.includes(database);
        const cause = causeOf(error);
        if (codeOf(cause) === missingDatabase || (isDatabaseUnavailable(cause) && (await isLost())))
          return { deleted: true, purged: 0 };
        throw error;
      }
    },

    list: (instance, signal) =>
      mapDatabaseErrors(async () => {
        const databases = await maintenance.databases(instance, signal, { rescan: true });
        const queuesOf = async (database: string) => {
          const queues = await sessions.use(instance, database, signal, listQueues);
          return queues.map((queue) => {
            const { id, name, visibilityTimeoutSeconds, maxAttempts, dlqEnabled, deletedAt, purgedAt } = queue;
            const settings = { visibilityTimeoutSeconds, maxAttempts, dlqEnabled };
            const ends = { deleted: deletedAt !== undefined, purged: purgedAt !== undefined };
            return create(EngineQueueSchema, { database, id, name, ...settings, ...ends });
          });
        };
        return (await inEachDatabase(() => databasesOf(instance, signal), queuesOf, databases)).flat();
      }),

    async call(instance, database, request, signal) {
      refusePlatform(database);
      refuseBlocked(instance, request);
      try {
        const response = await mapDatabaseErrors(() => call(instance, database, request, signal));
        if (request.request.case === "enqueue")
          waiters.notify(`${database} ${request.queue}`, request.request.value.messages.length);
        if (request.request.case === "beginTask") await startTask(instance, database, request.request.value.taskId);
        return response;
      } catch (error) {
        const code = codeOf(causeOf(error));
        if (code === missingDatabase)
          throw new EngineRefused(
            `The database ${database} of the queue does not exist. ` +
              "Repeat the request if it was renamed, or delete the queue if it was dropped.",
            { cause: error },
          );
        if (missingSchema.includes(code))
          throw new EngineRefused("The database has no queues.", { code: "queue_not_active", cause: error });
        throw error;
      }
    },

    sample: (instance, signal) => sampleQueues(sessions, instance, maintenance.scanned(instance), signal),
    maintain: maintenance.maintain,
    closeSessions: sessions.closeAll,
  };

  /** Starts the task without waiting for it; another agent resumes it if this one ends. */
  async function startTask(instance: Instance, database: string, taskId: string): Promise<void> {
    const signal = AbortSignal.timeout(10 * 60_000);
    const task = await sessions.use(instance, database, signal, (session) => readTask(session, { taskId }));
    if (task !== undefined && (task.state === "pending" || task.state === "running"))
      maintenance.begin(instance, database, task, signal);
  }
}

function settingsOf({ visibilityTimeoutSeconds, maxAttempts, dlqEnabled }: EngineQueue) {
  return { visibilityTimeoutSeconds, maxAttempts, dlqEnabled };
}

function refusePlatform(database: string): void {
  if (database === platform || database.startsWith("template"))
    throw new EngineRefused(`The database ${database} is reserved for the platform.`);
}

/**
 * Refuses requests that add data while users' writes are blocked. Claimed messages can still be settled, and
 * messages purged.
 */
function refuseBlocked({ writesBlocked }: Instance, { request }: QueueRequest): void {
  const addsData =
    request.case === "enqueue" ||
    request.case === "claim" ||
    (request.case === "beginTask" && request.value.kind === "redrive");
  if (writesBlocked === true && addsData)
    throw new EngineRefused("The disk is nearly full, so writes are blocked. Expand the storage.", { code: "no_room" });
}

/** Runs the work and converts its errors by `refusalOf`: a missing or closed database refuses connections. */
async function mapDatabaseErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw refusalOf(error);
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof EngineRefused ? error.cause : error;
}

/**
 * Claims that wait for messages. Messages that this agent enqueues wake them; for messages that users enqueue in SQL
 * they poll.
 */
interface QueueWaiters {
  /** Resolves when messages were enqueued, or after the poll interval: 100 ms, doubled with each round up to 1 s. */
  next(queue: string, round: number, untilMs: number, signal: AbortSignal): Promise<void>;
  /** Wakes as many waiters as there are new messages. */
  notify(queue: string, messages: number): void;
}

const firstPollMs = 100;
const maxPollMs = 1_000;

function createQueueWaiters(): QueueWaiters {
  const waiting = new Map<string, Set<() => void>>();
  return {
    async next(queue, round, untilMs, signal) {
      const woken = new AbortController();
      const wake = () => woken.abort();
      const waiters = waiting.get(queue) ?? new Set();
      waiting.set(queue, waiters.add(wake));
      const afterMs = Math.max(0, Math.min(firstPollMs * 2 ** round, maxPollMs, untilMs));
      await sleep(afterMs, undefined, { signal: AbortSignal.any([signal, woken.signal]) }).catch(() => undefined);
      waiters.delete(wake);
      if (waiters.size === 0) waiting.delete(queue);
      signal.throwIfAborted();
    },
    notify(queue, messages) {
      for (const wake of [...(waiting.get(queue) ?? [])].slice(0, messages)) wake();
    },
  };
}
