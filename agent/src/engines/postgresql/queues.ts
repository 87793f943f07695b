import { create } from "@bufbuild/protobuf";
import { type QueueAnswer, type QueueRequest } from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import { type EngineQueue, EngineQueueSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineRefused } from "../engine-errors.ts";
import type { QueuesFacet } from "../queues-facet.ts";
import { answerRequest } from "./queue/answer-request.ts";
import { deleteQueue } from "./queue/delete-queue.ts";
import { migrate, versionOf } from "./queue/migrate.ts";
import { createQueueSessions } from "./queue/queue-sessions.ts";
import { createQueueUpkeep } from "./queue/queue-upkeep.ts";
import { createQueueWaiters } from "./queue/queue-waiters.ts";
import { sampleQueues } from "./queue/sample-queues.ts";
import { adoptQueue, createQueue, listQueues, updateQueue } from "./queue/registry.ts";
import { readTask } from "./queue/task.ts";
import { inEachDatabase, isAboutDatabase, listDatabases } from "./database-list.ts";
import { platform } from "./layout.ts";
import { refusalOf } from "./refusal.ts";
import { codeOf, withSession } from "./session.ts";

const noSuchDatabase = "3D000";
/** Of users' making: a role of ours is not there, or may do nothing, because no schema is. */
const withoutSchema = ["22023", "42501", "42883", "42P01", "3F000"];

/** Queues in the databases of users, each with the schema `mdb_queue` once it has a queue. */
export function createQueues(): QueuesFacet {
  const sessions = createQueueSessions();
  const waiters = createQueueWaiters();
  const upkeep = createQueueUpkeep(sessions);

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
    upkeep.note(instance, database);
  }

  const databasesOf = (instance: Instance, signal: AbortSignal) =>
    sessions.alone(() => withSession(instance, signal, listDatabases));

  /** Claims again until there is something, the time is over or the caller has gone. */
  async function call(
    instance: Instance,
    database: string,
    request: QueueRequest,
    signal: AbortSignal,
  ): Promise<QueueAnswer> {
    const name = `${database} ${request.queue}`;
    const waitMs = request.request.case === "claim" ? request.request.value.waitSeconds * 1_000 : 0;
    const until = performance.now() + waitMs;
    for (let round = 0; ; round += 1) {
      const answer = await sessions.use(instance, database, signal, (session) => answerRequest(session, request));
      const leftMs = until - performance.now();
      const isEmpty = answer.answer.case === "messages" && answer.answer.value.messages.length === 0;
      if (!isEmpty || leftMs <= 0) return answer;
      await waiters.next(name, round, leftMs, signal);
    }
  }

  return {
    put: (instance, queue, { adopt }, signal) => told(() => sessions.alone(() => put(instance, queue, adopt, signal))),

    async remove(instance, { database, id }, signal) {
      refusePlatform(database);
      try {
        return await told(() =>
          sessions.alone(() =>
            withSession(
              instance,
              signal,
              async (session) => {
                if ((await versionOf(session)) === 0) return { gone: true, purged: 0 };
                const { state, purged } = await deleteQueue(session, { id });
                return { gone: state === "gone", purged };
              },
              { database },
            ),
          ),
        );
      } catch (error) {
        const isLost = async () => (await databasesOf(instance, signal)).invalid.includes(database);
        const cause = causeOf(error);
        if (codeOf(cause) === noSuchDatabase || (isAboutDatabase(cause) && (await isLost())))
          return { gone: true, purged: 0 };
        throw error;
      }
    },

    list: (instance, signal) =>
      told(async () => {
        const having = await upkeep.databases(instance, signal, { anew: true });
        const queuesOf = async (database: string) => {
          const queues = await sessions.use(instance, database, signal, listQueues);
          return queues.map((queue) => {
            const { id, name, visibilityTimeoutSeconds, maxAttempts, dlqEnabled, deletedAt, purgedAt } = queue;
            const settings = { visibilityTimeoutSeconds, maxAttempts, dlqEnabled };
            const ends = { deleted: deletedAt !== undefined, purged: purgedAt !== undefined };
            return create(EngineQueueSchema, { database, id, name, ...settings, ...ends });
          });
        };
        return (await inEachDatabase(() => databasesOf(instance, signal), queuesOf, having)).flat();
      }),

    async call(instance, database, request, signal) {
      refusePlatform(database);
      refuseBlocked(instance, request);
      try {
        const answer = await told(() => call(instance, database, request, signal));
        if (request.request.case === "enqueue")
          waiters.came(`${database} ${request.queue}`, request.request.value.messages.length);
        if (request.request.case === "beginTask") await begin(instance, database, request.request.value.taskId);
        return answer;
      } catch (error) {
        if (withoutSchema.includes(codeOf(causeOf(error))))
          throw new EngineRefused("the database has no queues", { code: "queue_not_active", cause: error });
        throw error;
      }
    },

    sample: (instance, signal) => sampleQueues(sessions, instance, upkeep.known(instance), signal),
    keep: upkeep.keep,
    letGo: sessions.letGo,
  };

  /** The answer does not wait for the work; it goes on when the agent of it is gone. */
  async function begin(instance: Instance, database: string, taskId: string): Promise<void> {
    const signal = AbortSignal.timeout(10 * 60_000);
    const task = await sessions.use(instance, database, signal, (session) => readTask(session, { taskId }));
    if (task !== undefined && (task.state === "pending" || task.state === "running"))
      upkeep.begin(instance, database, task, signal);
  }
}

function settingsOf({ visibilityTimeoutSeconds, maxAttempts, dlqEnabled }: EngineQueue) {
  return { visibilityTimeoutSeconds, maxAttempts, dlqEnabled };
}

function refusePlatform(database: string): void {
  if (database === platform || database.startsWith("template"))
    throw new EngineRefused(`the database ${database} is the platform's`);
}

/** What is blocked for users is not written for them here either; what was claimed can be ended, and messages purged. */
function refuseBlocked({ writesBlocked }: Instance, { request }: QueueRequest): void {
  const isMore =
    request.case === "enqueue" ||
    request.case === "claim" ||
    (request.case === "beginTask" && request.value.kind === "redrive");
  if (writesBlocked === true && isMore)
    throw new EngineRefused("the disk is nearly full: writes are blocked", { code: "no_room" });
}

/** Failures of a connection to a database that is not there, or refuses it, are the engine's no too. */
async function told<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw refusalOf(error);
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof EngineRefused ? error.cause : error;
}
