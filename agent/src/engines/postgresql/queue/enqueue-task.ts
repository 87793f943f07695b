import { groupsOf } from "@holdfast/common/in-turns.ts";
import type { Session } from "../session.ts";
import { type QueueTask, readTask } from "./task.ts";
import { QueueRefused, refusing } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";
import { inTransaction } from "./transaction.ts";

export interface NewMessage {
  /** JSON text of an object; every digit of its numbers is kept. */
  readonly payload: string;
  /** 0 to 43200. */
  readonly delaySeconds: number;
}

export interface EnqueueTask {
  readonly taskId: string;
  readonly queue: string;
  /** Tells the same request from another one of its id. */
  readonly bodyHash: string;
  readonly messages: readonly NewMessage[];
}

/** Messages of the parameters $4 and $5, with the numbers that they take in the order of the request. */
const fresh = `moment AS MATERIALIZED (SELECT clock_timestamp() AS at),
    fresh AS MATERIALIZED (
      SELECT nextval('${schema}.messages_id_seq') AS id, asked.payload, asked.delay, asked.place FROM (
        SELECT u.payload::jsonb AS payload, u.delay, u.place
          FROM unnest($4::text[], $5::double precision[]) WITH ORDINALITY AS u (payload, delay, place) ORDER BY u.place
      ) AS asked
    )`;
const freshIds = "(SELECT jsonb_agg(f.id ORDER BY f.place) FROM fresh f)";
const putFresh = `put AS (
      INSERT INTO ${schema}.messages (id, queue_name, payload, max_attempts, visible_at, enqueued_at)
        OVERRIDING SYSTEM VALUE
        SELECT f.id, q.name, f.payload, q.max_attempts, m.at + make_interval(secs => f.delay), m.at
          FROM fresh f, queue q, moment m, task t ORDER BY f.place
    )
  SELECT id FROM task`;
const activeQueue = `queue AS (SELECT q.name, q.max_attempts FROM ${schema}.queues q WHERE q.name = $2 AND q.deleted_at IS NULL)`;

/** Messages and their task in one statement, and so both or none. */
const enqueueStatement = `
  WITH ${activeQueue}, ${fresh},
    task AS (
      INSERT INTO ${schema}.tasks (id, queue_name, kind, body_hash, state, result)
        SELECT $1, q.name, 'enqueue', $3, 'completed', jsonb_build_object('message_ids', ${freshIds})
          FROM queue q
        ON CONFLICT (id) DO NOTHING RETURNING id
    ),
    ${putFresh}`;

/** More messages of a task that the same transaction has made. */
const enqueueMoreStatement = `
  WITH ${activeQueue}, ${fresh},
    task AS (
      UPDATE ${schema}.tasks SET result = jsonb_build_object('message_ids', result -> 'message_ids' || ${freshIds})
        WHERE id = $1 AND body_hash = $3 AND EXISTS (SELECT FROM queue) RETURNING id
    ),
    ${putFresh}`;

/**
 * Enqueues the messages and keeps the answer under the task's id, committed when this resolves. Asked again with the same id it
 * answers what it did then. Throws QueueRefused: `queue_not_active`, `payload_not_valid`, `payload_too_large`, and
 * `task_conflict` for another body under the id.
 */
export function enqueue(session: Session, asked: EnqueueTask): Promise<QueueTask> {
  const { taskId, queue, bodyHash } = asked;
  return refusing(async () => {
    const known = await readTask(session, { taskId });
    if (known === undefined) await put(session, asked);
    const task = known ?? (await readTask(session, { taskId }));
    if (task === undefined) throw notActive(queue);
    if (task.kind !== "enqueue" || task.bodyHash !== bodyHash || task.queue !== queue)
      throw new QueueRefused("task_conflict", "the task was asked for with another body");
    return task;
  });
}

/** Nothing is put when there is such a task by now. A statement with all of many bytes would hold the agent's event loop. */
async function put(session: Session, { taskId, queue, bodyHash, messages }: EnqueueTask): Promise<void> {
  const [first = [], ...rest] = groupsOf(messages, ({ payload }) => payload.length);
  const putGroup = (statement: string, group: readonly NewMessage[]) =>
    session.rows(statement, [
      taskId,
      queue,
      bodyHash,
      group.map(({ payload }) => payload),
      group.map(({ delaySeconds }) => delaySeconds),
    ]);
  if (rest.length === 0) return void (await putGroup(enqueueStatement, first));
  await inTransaction(session, async () => {
    if ((await putGroup(enqueueStatement, first)).length === 0) return;
    for (const group of rest) {
      if ((await putGroup(enqueueMoreStatement, group)).length === 0) throw notActive(queue);
    }
  });
}

function notActive(queue: string): QueueRefused {
  return new QueueRefused("queue_not_active", `queue ${queue} is not active`);
}
