import { groupsBySize } from "@holdfast/common/incremental.ts";
import { inTransaction, type Session } from "../session.ts";
import { type QueueTask, readTask } from "./task.ts";
import { QueueRefused, mapRefusals } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";

export interface NewMessage {
  /** Payload as JSON, an object; all digits of its numbers are preserved. */
  readonly payload: string;
  /** Delay in seconds, 0 to 43200. */
  readonly delaySeconds: number;
}

export interface EnqueueTask {
  readonly taskId: string;
  readonly queue: string;
  /** Hash of the request, to detect a different request with the same id. */
  readonly bodyHash: string;
  readonly messages: readonly NewMessage[];
}

/** CTE: messages of the parameters $4 and $5, with their new ids in the order of the request. */
const newMessages = `moment AS MATERIALIZED (SELECT clock_timestamp() AS at),
    new_messages AS MATERIALIZED (
      SELECT nextval('${schema}.messages_id_seq') AS id, input.payload, input.delay, input.ordinal FROM (
        SELECT u.payload::jsonb AS payload, u.delay, u.ordinal
          FROM unnest($4::text[], $5::double precision[]) WITH ORDINALITY AS u (payload, delay, ordinal) ORDER BY u.ordinal
      ) AS input
    )`;
const newIds = "(SELECT jsonb_agg(f.id ORDER BY f.ordinal) FROM new_messages f)";
const insertMessages = `put AS (
      INSERT INTO ${schema}.messages (id, queue_name, payload, max_attempts, visible_at, enqueued_at)
        OVERRIDING SYSTEM VALUE
        SELECT f.id, q.name, f.payload, q.max_attempts, m.at + make_interval(secs => f.delay), m.at
          FROM new_messages f, queue q, moment m, task t ORDER BY f.ordinal
    )
  SELECT id FROM task`;
const activeQueue = `queue AS (SELECT q.name, q.max_attempts FROM ${schema}.queues q WHERE q.name = $2 AND q.deleted_at IS NULL)`;

/** Inserts the messages and their task in one statement, so both or neither. */
const enqueueStatement = `
  WITH ${activeQueue}, ${newMessages},
    task AS (
      INSERT INTO ${schema}.tasks (id, queue_name, kind, body_hash, state, result)
        SELECT $1, q.name, 'enqueue', $3, 'completed', jsonb_build_object('message_ids', ${newIds})
          FROM queue q
        ON CONFLICT (id) DO NOTHING RETURNING id
    ),
    ${insertMessages}`;

/** Inserts further messages of a task that the same transaction created. */
const enqueueMoreStatement = `
  WITH ${activeQueue}, ${newMessages},
    task AS (
      UPDATE ${schema}.tasks SET result = jsonb_build_object('message_ids', result -> 'message_ids' || ${newIds})
        WHERE id = $1 AND body_hash = $3 AND EXISTS (SELECT FROM queue) RETURNING id
    ),
    ${insertMessages}`;

/**
 * Enqueues messages and stores the result under the task's id; both are committed when it resolves. A repetition with
 * the same id returns the stored result. Throws QueueRefused: `queue_not_active`, `payload_not_valid`,
 * `payload_too_large`, and `task_conflict` for another request under the id.
 */
export function enqueue(session: Session, request: EnqueueTask): Promise<QueueTask> {
  const { taskId, queue, bodyHash } = request;
  return mapRefusals(async () => {
    const existing = await readTask(session, { taskId });
    if (existing === undefined) await put(session, request);
    const task = existing ?? (await readTask(session, { taskId }));
    if (task === undefined) throw notActive(queue);
    if (task.kind !== "enqueue" || task.bodyHash !== bodyHash || task.queue !== queue)
      throw new QueueRefused("task_conflict", "A task with this id exists with another body.");
    return task;
  });
}

/**
 * Does nothing if the task exists. Large requests are split into groups: one statement with all bytes would block the
 * agent's event loop.
 */
async function put(session: Session, { taskId, queue, bodyHash, messages }: EnqueueTask): Promise<void> {
  const [first = [], ...remaining] = groupsBySize(messages, ({ payload }) => payload.length);
  const putGroup = (statement: string, group: readonly NewMessage[]) =>
    session.rows(statement, [
      taskId,
      queue,
      bodyHash,
      group.map(({ payload }) => payload),
      group.map(({ delaySeconds }) => delaySeconds),
    ]);
  if (remaining.length === 0) return void (await putGroup(enqueueStatement, first));
  await inTransaction(session, async () => {
    if ((await putGroup(enqueueStatement, first)).length === 0) return;
    for (const group of remaining) {
      if ((await putGroup(enqueueMoreStatement, group)).length === 0) throw notActive(queue);
    }
  });
}

function notActive(queue: string): QueueRefused {
  return new QueueRefused("queue_not_active", `queue ${queue} is not active`);
}
