import { inTransaction, type Session } from "../session.ts";
import { QueueRefused, mapRefusals } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";
import { updateTask, readTask } from "./task.ts";

export interface ClaimedMessage {
  readonly id: bigint;
  /** Payload as JSON. */
  readonly payload: string;
  readonly attemptCount: number;
  readonly enqueuedAt: Date;
  readonly visibleAt: Date;
}

export interface ClaimRequest {
  readonly queue: string;
  /** Worker id, unique for each claim; ack, nack and extend must present it. */
  readonly worker: string;
  readonly max: number;
  /** Visibility timeout; the queue's if undefined. */
  readonly visibilitySeconds?: number | undefined;
  /** Max total size of the payloads in bytes, 4 MiB by default. A larger message is the only one of its response. */
  readonly maxBytes?: number;
  /**
   * Idempotency key: a repeated claim returns what the first one still has leased. The worker id must be derived from
   * it.
   */
  readonly task?: { readonly id: string; readonly bodyHash: string };
}

/**
 * Claims up to `max` messages, in order of id, and fewer if their payloads exceed `maxBytes`; the others are not
 * claimed. Throws QueueRefused with `task_conflict` for another request under the task's id.
 */
export function claim(session: Session, request: ClaimRequest): Promise<ClaimedMessage[]> {
  return mapRefusals(async () => {
    if (request.task !== undefined) {
      const claimed = await claimedBy(session, request, request.task);
      if (claimed !== undefined) return claimed;
    }
    for (let limit = request.max; ; limit = Math.ceil(limit / 2)) {
      const messages = await claimOnce(session, request, limit);
      if (messages !== undefined) return messages;
    }
  });
}

/** Undefined, with nothing claimed, if the payloads exceed the limit. */
async function claimOnce(
  session: Session,
  request: ClaimRequest,
  limit: number,
): Promise<ClaimedMessage[] | undefined> {
  const { queue, worker, visibilitySeconds, maxBytes = 4 * 1024 * 1024, task } = request;
  const tooMuch = new Error("the claim has too many bytes");
  try {
    return await inTransaction(session, async () => {
      // Insert the task first: a concurrent claim with the same key waits here and then finds this claim's messages.
      if (task !== undefined) {
        const [inserted] = await session.rows(
          `INSERT INTO ${schema}.tasks (id, queue_name, kind, body_hash, state) VALUES ($1, $2, 'claim', $3, 'running')
           ON CONFLICT (id) DO NOTHING RETURNING 1`,
          [task.id, queue, task.bodyHash],
        );
        if (inserted === undefined) return (await claimedBy(session, request, task)) ?? [];
      }
      const rows = await session.rows<Row>(
        `SELECT id, attempt_count, enqueued_at, visible_at,
           CASE WHEN bytes <= $5 OR number = 1 THEN text END AS payload FROM (
             SELECT c.*, sum(octet_length(c.text)) OVER (ORDER BY c.id) AS bytes, row_number() OVER (ORDER BY c.id) AS number
             FROM (SELECT m.*, m.payload::text AS text FROM ${schema}.claim($1, $2, $3, $4) m) AS c) AS sized ORDER BY id`,
        [queue, worker, limit, visibilitySeconds ?? null, maxBytes],
      );
      const messages = rows.flatMap((row) => messageOf(row) ?? []);
      if (messages.length < rows.length) throw tooMuch;
      if (task !== undefined) {
        const result = JSON.stringify({ message_ids: messages.map(({ id }) => Number(id)) });
        await updateTask(session, task.id, { state: "completed", result });
      }
      return messages;
    });
  } catch (error) {
    if (error === tooMuch) return undefined;
    throw error;
  }
}

/** Messages that an earlier claim of this task still has leased; undefined if there was none. */
async function claimedBy(
  session: Session,
  { queue, worker }: ClaimRequest,
  requested: { readonly id: string; readonly bodyHash: string },
): Promise<ClaimedMessage[] | undefined> {
  const task = await readTask(session, { taskId: requested.id });
  if (task === undefined) return undefined;
  if (task.kind !== "claim" || task.bodyHash !== requested.bodyHash || task.queue !== queue)
    throw new QueueRefused("task_conflict", "A claim with this id exists with another body.");
  const rows = await session.rows<Row>(
    `SELECT m.id, m.payload::text AS payload, m.attempt_count, m.enqueued_at, m.visible_at FROM ${schema}.messages m
     WHERE m.id IN (SELECT e::bigint FROM jsonb_array_elements_text($1::jsonb -> 'message_ids') AS e)
       AND m.queue_name = $2 AND m.claimed_by = $3 ORDER BY m.id`,
    [task.result ?? "{}", queue, worker],
  );
  return rows.flatMap((row) => messageOf(row) ?? []);
}

interface Row {
  readonly id: string;
  readonly payload: string | null;
  readonly attempt_count: number;
  readonly enqueued_at: Date;
  readonly visible_at: Date;
}

function messageOf(row: Row): ClaimedMessage | undefined {
  if (row.payload === null) return undefined;
  return {
    id: BigInt(row.id),
    payload: row.payload,
    attemptCount: row.attempt_count,
    enqueuedAt: row.enqueued_at,
    visibleAt: row.visible_at,
  };
}
