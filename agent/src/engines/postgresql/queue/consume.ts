import type { Session } from "../session.ts";
import { QueueRefused, refusing } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";
import { noteTask, readTask } from "./task.ts";
import { inTransaction } from "./transaction.ts";

export interface ClaimedMessage {
  readonly id: bigint;
  /** JSON text. */
  readonly payload: string;
  readonly attemptCount: number;
  readonly enqueuedAt: Date;
  readonly visibleAt: Date;
}

export interface ClaimRequest {
  readonly queue: string;
  /** One of a kind for each claim: it is what ack, nack and extend show. */
  readonly worker: string;
  readonly max: number;
  /** The queue's when undefined. */
  readonly visibilitySeconds?: number | undefined;
  /** Bytes of payloads; a message that is larger comes alone. 4 MiB when not given. */
  readonly maxBytes?: number;
  /** Of a claim that may be asked again: it then answers what it still holds. The worker must follow from it. */
  readonly task?: { readonly id: string; readonly bodyHash: string };
}

/** Messages in order of id. Fewer than there are when they come to more than `maxBytes`: the rest is not claimed. */
export function claim(session: Session, request: ClaimRequest): Promise<ClaimedMessage[]> {
  return refusing(async () => {
    if (request.task !== undefined) {
      const held = await heldBy(session, request, request.task);
      if (held !== undefined) return held;
    }
    for (let most = request.max; ; most = Math.ceil(most / 2)) {
      const answer = await claimOnce(session, request, most);
      if (answer !== undefined) return answer;
    }
  });
}

/** Undefined, and nothing claimed, when more bytes came than may. */
async function claimOnce(session: Session, request: ClaimRequest, most: number): Promise<ClaimedMessage[] | undefined> {
  const { queue, worker, visibilitySeconds, maxBytes = 4 * 1024 * 1024, task } = request;
  const tooMuch = new Error("the claim has too many bytes");
  try {
    return await inTransaction(session, async () => {
      // Before the claim: a second one with the same key waits here, and then finds this one's.
      if (task !== undefined) {
        const [mine] = await session.rows(
          `INSERT INTO ${schema}.tasks (id, queue_name, kind, body_hash, state) VALUES ($1, $2, 'claim', $3, 'running')
           ON CONFLICT (id) DO NOTHING RETURNING 1`,
          [task.id, queue, task.bodyHash],
        );
        if (mine === undefined) return (await heldBy(session, request, task)) ?? [];
      }
      const rows = await session.rows<Row>(
        `SELECT id, attempt_count, enqueued_at, visible_at,
           CASE WHEN bytes <= $5 OR number = 1 THEN text END AS payload FROM (
             SELECT c.*, sum(octet_length(c.text)) OVER (ORDER BY c.id) AS bytes, row_number() OVER (ORDER BY c.id) AS number
             FROM (SELECT m.*, m.payload::text AS text FROM ${schema}.claim($1, $2, $3, $4) m) AS c) AS sized ORDER BY id`,
        [queue, worker, most, visibilitySeconds ?? null, maxBytes],
      );
      const messages = rows.flatMap((row) => messageOf(row) ?? []);
      if (messages.length < rows.length) throw tooMuch;
      if (task !== undefined) {
        const result = JSON.stringify({ message_ids: messages.map(({ id }) => Number(id)) });
        await noteTask(session, task.id, { state: "completed", result });
      }
      return messages;
    });
  } catch (error) {
    if (error === tooMuch) return undefined;
    throw error;
  }
}

/** What an earlier claim of this task still holds; undefined when there was none. */
async function heldBy(
  session: Session,
  { queue, worker }: ClaimRequest,
  asked: { readonly id: string; readonly bodyHash: string },
): Promise<ClaimedMessage[] | undefined> {
  const task = await readTask(session, { taskId: asked.id });
  if (task === undefined) return undefined;
  if (task.kind !== "claim" || task.bodyHash !== asked.bodyHash || task.queue !== queue)
    throw new QueueRefused("task_conflict", "the claim was asked for with another body");
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
