import type { Session } from "../session.ts";
import { mapRefusals } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";

export interface ListedMessage {
  readonly id: bigint;
  /** Payload as JSON. */
  readonly payload: string;
  readonly maxAttempts: number;
  readonly attemptCount: number;
  readonly enqueuedAt: Date;
  readonly visibleAt: Date;
  readonly claimedBy: string | undefined;
  readonly lastError: string | undefined;
  /** Time of death; undefined for a live message. */
  readonly diedAt: Date | undefined;
}

export interface ListRequest {
  readonly queue: string;
  readonly limit: number;
  /** Cursor: id of the last message of the previous page. */
  readonly afterId?: bigint | undefined;
  /** Maximum bytes of payloads, 4 MiB by default; the first message may exceed it. */
  readonly maxBytes?: number;
}

/** Messages in any state, in order of id, without claiming them. */
export const peek = (session: Session, request: ListRequest) => list(session, "messages", "NULL::timestamptz", request);

/** Dead messages in order of id. */
export const listDead = (session: Session, request: ListRequest) => list(session, "dead_messages", "died_at", request);

function list(
  session: Session,
  table: "messages" | "dead_messages",
  diedAt: string,
  { queue, limit, afterId = 0n, maxBytes = 4 * 1024 * 1024 }: ListRequest,
): Promise<ListedMessage[]> {
  return mapRefusals(async () => {
    const rows = await session.rows<Row>(
      `SELECT * FROM (
         SELECT p.*, sum(octet_length(p.payload)) OVER (ORDER BY p.id) AS bytes, row_number() OVER (ORDER BY p.id) AS number
         FROM (SELECT m.id, m.payload::text AS payload, m.max_attempts, m.attempt_count, m.enqueued_at, m.visible_at,
             m.claimed_by, m.last_error, ${diedAt} AS died_at
           FROM ${schema}.${table} m WHERE m.queue_name = $1 AND m.id > $2 ORDER BY m.id LIMIT $3) AS p) AS sized
       WHERE bytes <= $4 OR number = 1 ORDER BY id`,
      [queue, String(afterId), limit, maxBytes],
    );
    return rows.map((row) => ({
      id: BigInt(row.id),
      payload: row.payload,
      maxAttempts: row.max_attempts,
      attemptCount: row.attempt_count,
      enqueuedAt: row.enqueued_at,
      visibleAt: row.visible_at,
      claimedBy: row.claimed_by ?? undefined,
      lastError: row.last_error ?? undefined,
      diedAt: row.died_at ?? undefined,
    }));
  });
}

interface Row {
  readonly id: string;
  readonly payload: string;
  readonly max_attempts: number;
  readonly attempt_count: number;
  readonly enqueued_at: Date;
  readonly visible_at: Date;
  readonly claimed_by: string | null;
  readonly last_error: string | null;
  readonly died_at: Date | null;
}
