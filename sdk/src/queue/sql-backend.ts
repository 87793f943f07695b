import type { Backend, Claimed, Held } from "./backend.ts";
import { createLooks } from "./looks.ts";
import type { Queryable } from "./queue-types.ts";

/** The array beside each join: statistics of an empty queue would make the planner read all messages first. */
const statements = {
  enqueue: "SELECT id::text FROM mdb_queue.enqueue_many($1, ARRAY(SELECT jsonb_array_elements($2::jsonb)), $3) AS id",
  visibility: "SELECT visibility_timeout_seconds AS seconds FROM mdb_queue.queues WHERE name = $1",
  claim: `SELECT outcome, id::text, payload::text, attempt_count, enqueued_at, in_order
    FROM mdb_queue.ack_and_claim($1, $2, $3::bigint[], $4::text[], $5, $6, $7::bigint, $8::timestamptz)`,
  ack: `WITH asked AS (SELECT * FROM unnest($2::bigint[], $3::text[]) AS a (id, worker)),
      done AS (DELETE FROM mdb_queue.messages m USING asked a
        WHERE m.id = ANY ($2::bigint[]) AND m.id = a.id AND m.claimed_by = a.worker AND m.queue_name = $1
        RETURNING m.id)
    SELECT id::text FROM asked WHERE id NOT IN (SELECT id FROM done)`,
  nack: "SELECT id::text FROM mdb_queue.nack($1, $2, $3::bigint[], $4, $5, $6) WHERE NOT done",
  extend: `WITH asked AS (SELECT * FROM unnest($2::bigint[], $3::text[]) AS a (id, worker)),
      done AS (UPDATE mdb_queue.messages m SET visible_at = clock_timestamp() + make_interval(secs => $4::double precision)
        FROM asked a WHERE m.id = ANY ($2::bigint[]) AND m.id = a.id AND m.claimed_by = a.worker AND m.queue_name = $1
        RETURNING m.id)
    SELECT id::text FROM asked WHERE id NOT IN (SELECT id FROM done)`,
  release: `WITH asked AS (SELECT * FROM unnest($2::bigint[], $3::text[]) AS a (id, worker)),
      done AS (UPDATE mdb_queue.messages m SET visible_at = clock_timestamp(), claimed_by = NULL,
          attempt_count = greatest(m.attempt_count - 1, 0)
        FROM asked a WHERE m.id = ANY ($2::bigint[]) AND m.id = a.id AND m.claimed_by = a.worker AND m.queue_name = $1
        RETURNING m.id)
    SELECT id::text FROM asked WHERE id NOT IN (SELECT id FROM done)`,
} as const;

/** Queue not active, payload not valid or too large, no such schema or function, not permitted. */
const finalStates = new Set(["HQ001", "HQ002", "HQ003", "HQ004", "3F000", "42P01", "42883", "42501"]);

/**
 * Statements with all that they need in them, and nothing that outlives one: they work behind a pooler that gives each
 * statement another session. Arrays are sent as text, which every driver can.
 */
export function createSqlBackend(pool: Queryable, queue: string): Backend {
  // Of all workers of the queue here: each by itself would begin with a look at everything.
  const looks = createLooks();
  const idsOf = async (text: string, values: unknown[], client = pool): Promise<string[]> =>
    (await client.query(text, values)).rows.map(({ id }) => String(id));
  const settle = async (text: string, held: readonly Held[], ...more: unknown[]) =>
    held.length === 0 ? new Set<string>() : new Set(await idsOf(text, [queue, ...arraysOf(held), ...more]));
  return {
    mostClaimed: 1000,
    enqueue: (payloads, delaySeconds, within) =>
      idsOf(statements.enqueue, [queue, JSON.stringify(payloads), delaySeconds], within as Queryable | undefined),
    async visibilitySeconds() {
      const [row] = (await pool.query(statements.visibility, [queue])).rows;
      return Number(row?.["seconds"] ?? 30);
    },
    async claim({ most, visibilitySeconds, acks }) {
      const token = crypto.randomUUID();
      const look = looks.next();
      const bounds = [look.afterId, look.isWhole ? "-infinity" : "infinity"];
      const values = [queue, token, ...arraysOf(acks), most, visibilitySeconds, ...bounds];
      const { rows } = await pool.query(statements.claim, values).catch((error: unknown) => {
        look.failed();
        throw error;
      });
      const claimed = rows.filter(({ outcome }) => outcome === "claimed");
      look.found(
        claimed.map((row) => ({ id: String(row["id"]), isInOrder: row["in_order"] === true })),
        most,
      );
      return {
        messages: claimed.map((row) => messageOf(row, token)),
        lost: new Set(rows.filter(({ outcome }) => outcome === "lost").map(({ id }) => String(id))),
      };
    },
    ack: (held) => settle(statements.ack, held),
    nack: async ({ id, token }, { delaySeconds, error, discard }) =>
      new Set(await idsOf(statements.nack, [queue, token, `{${id}}`, delaySeconds, error, discard])),
    extend: (held, seconds) => settle(statements.extend, held, seconds),
    release: (held) => settle(statements.release, held),
    isFinal: (error) => error instanceof Error && "code" in error && finalStates.has(String(error.code)),
  };
}

/** Ids are digits and tokens are UUIDs: neither needs quotes. */
function arraysOf(held: readonly Held[]): [ids: string, tokens: string] {
  return [`{${held.map(({ id }) => id).join()}}`, `{${held.map(({ token }) => token).join()}}`];
}

function messageOf(row: Record<string, unknown>, token: string): Claimed {
  const enqueuedAt = row["enqueued_at"];
  return {
    id: String(row["id"]),
    token,
    payload: JSON.parse(String(row["payload"])),
    attemptCount: Number(row["attempt_count"]),
    enqueuedAt: enqueuedAt instanceof Date ? enqueuedAt : new Date(String(enqueuedAt)),
  };
}
