import { inTransaction, type Session } from "../session.ts";
import { QueueRefused, mapRefusals } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";

export interface QueueSettings {
  readonly visibilityTimeoutSeconds: number;
  readonly maxAttempts: number;
  readonly dlqEnabled: boolean;
}

/** A queue as stored in its database. */
export interface RegisteredQueue extends QueueSettings {
  readonly id: string;
  readonly name: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** Time of deletion; messages may remain. */
  readonly deletedAt: Date | undefined;
  /** Time at which the last message of a deleted queue was removed and its name became free. */
  readonly purgedAt: Date | undefined;
}

/** Queues of the database, deleted ones included, ordered by name. Throws EngineRefused if there is no schema. */
export function listQueues(session: Session): Promise<RegisteredQueue[]> {
  return mapRefusals(async () =>
    (await session.rows<Row>(`SELECT * FROM ${schema}.queues ORDER BY name`)).map(queueOf),
  );
}

/**
 * Creates the queue, or returns it as it is if it exists with this id. Throws QueueRefused with `queue_exists` while
 * another queue has the name, even a deleted one whose messages are still being purged.
 */
export function createQueue(
  session: Session,
  {
    id,
    name,
    visibilityTimeoutSeconds,
    maxAttempts,
    dlqEnabled,
  }: QueueSettings & { readonly id: string; readonly name: string },
): Promise<RegisteredQueue> {
  return mapRefusals(async () => {
    // Not an upsert: its row lock sets xmax, which `check_queues` would take for a deletion.
    const [created] = await inTransaction(session, async () => {
      await session.rows(`DELETE FROM ${schema}.queues WHERE name = $1 AND purged_at IS NOT NULL AND id <> $2`, [
        name,
        id,
      ]);
      return session.rows<Row>(
        `INSERT INTO ${schema}.queues (id, name, visibility_timeout_seconds, max_attempts, dlq_enabled)
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING RETURNING *`,
        [id, name, visibilityTimeoutSeconds, maxAttempts, dlqEnabled],
      );
    });
    if (created !== undefined) return queueOf(created);
    const [found] = await session.rows<Row>(`SELECT * FROM ${schema}.queues WHERE name = $1`, [name]);
    if (found?.id === id) return queueOf(found);
    throw new QueueRefused("queue_exists", `There is a queue ${name} in this database already.`);
  });
}

const lastId = `(SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM ${schema}.messages_id_seq s)`;

/**
 * Changes the given settings; dlqEnabled applies to later messages. Undefined if there is no live queue with the id.
 */
export function updateQueue(
  session: Session,
  { id, visibilityTimeoutSeconds, maxAttempts, dlqEnabled }: Partial<QueueSettings> & { readonly id: string },
): Promise<RegisteredQueue | undefined> {
  return mapRefusals(async () => {
    // Beyond 100 changes the two oldest are dropped as a pair, which does not affect later messages.
    const [row] = await session.rows<Row>(
      `UPDATE ${schema}.queues q SET visibility_timeout_seconds = coalesce($2::integer, q.visibility_timeout_seconds),
         max_attempts = coalesce($3::integer, q.max_attempts), dlq_enabled = coalesce($4::boolean, q.dlq_enabled),
         dlq_flips = CASE WHEN $4::boolean IS DISTINCT FROM q.dlq_enabled AND $4::boolean IS NOT NULL
           THEN CASE WHEN cardinality(q.dlq_flips) < 100 THEN q.dlq_flips ELSE q.dlq_flips[3:] END || ${lastId}
           ELSE q.dlq_flips END,
         updated_at = clock_timestamp()
       WHERE q.id = $1 AND q.deleted_at IS NULL RETURNING q.*`,
      [id, visibilityTimeoutSeconds ?? null, maxAttempts ?? null, dlqEnabled ?? null],
    );
    return row && queueOf(row);
  });
}

/** Assigns another id to a live queue of this name, in a copy of a service; undefined if there is none. */
export function adoptQueue(
  session: Session,
  { name, id }: { readonly name: string; readonly id: string },
): Promise<RegisteredQueue | undefined> {
  return mapRefusals(async () => {
    const [row] = await session.rows<Row>(
      `UPDATE ${schema}.queues SET id = $2 WHERE name = $1 AND deleted_at IS NULL RETURNING *`,
      [name, id],
    );
    return row && queueOf(row);
  });
}

interface Row {
  readonly id: string;
  readonly name: string;
  readonly visibility_timeout_seconds: number;
  readonly max_attempts: number;
  readonly dlq_enabled: boolean;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly deleted_at: Date | null;
  readonly purged_at: Date | null;
}

function queueOf(row: Row): RegisteredQueue {
  return {
    id: row.id,
    name: row.name,
    visibilityTimeoutSeconds: row.visibility_timeout_seconds,
    maxAttempts: row.max_attempts,
    dlqEnabled: row.dlq_enabled,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at ?? undefined,
    purgedAt: row.purged_at ?? undefined,
  };
}
