import type { Backend, Claimed, Claim } from "./backend.ts";
import type { Queryable } from "./queue-types.ts";

/**
 * Each join also has the condition `id = ANY (array)`: with the statistics of an empty queue, the planner would
 * otherwise scan all messages.
 */
const statements = {
  enqueue: "SELECT id::text FROM mdb_queue.enqueue_many($1, ARRAY(SELECT jsonb_array_elements($2::jsonb)), $3) AS id",
  visibility: "SELECT visibility_timeout_seconds AS seconds FROM mdb_queue.queues WHERE name = $1",
  claim: `SELECT outcome, id::text, payload::text, attempt_count, enqueued_at, in_order
    FROM mdb_queue.ack_and_claim($1, $2, $3::bigint[], $4::text[], $5, $6, $7::bigint, $8::timestamptz)`,
  ack: `WITH claims AS (SELECT * FROM unnest($2::bigint[], $3::text[]) AS a (id, worker)),
      done AS (DELETE FROM mdb_queue.messages m USING claims a
        WHERE m.id = ANY ($2::bigint[]) AND m.id = a.id AND m.claimed_by = a.worker AND m.queue_name = $1
        RETURNING m.id)
    SELECT id::text FROM claims WHERE id NOT IN (SELECT id FROM done)`,
  nack: "SELECT id::text FROM mdb_queue.nack($1, $2, $3::bigint[], $4, $5, $6) WHERE NOT done",
  extend: `WITH claims AS (SELECT * FROM unnest($2::bigint[], $3::text[]) AS a (id, worker)),
      done AS (UPDATE mdb_queue.messages m SET visible_at = clock_timestamp() + make_interval(secs => $4::double precision)
        FROM claims a WHERE m.id = ANY ($2::bigint[]) AND m.id = a.id AND m.claimed_by = a.worker AND m.queue_name = $1
        RETURNING m.id)
    SELECT id::text FROM claims WHERE id NOT IN (SELECT id FROM done)`,
  release: `WITH claims AS (SELECT * FROM unnest($2::bigint[], $3::text[]) AS a (id, worker)),
      done AS (UPDATE mdb_queue.messages m SET visible_at = clock_timestamp(), claimed_by = NULL,
          attempt_count = greatest(m.attempt_count - 1, 0)
        FROM claims a WHERE m.id = ANY ($2::bigint[]) AND m.id = a.id AND m.claimed_by = a.worker AND m.queue_name = $1
        RETURNING m.id)
    SELECT id::text FROM claims WHERE id NOT IN (SELECT id FROM done)`,
} as const;

/**
 * SQLSTATEs of permanent errors: queue not active, payload invalid or too large, schema or function absent, access
 * denied.
 */
const permanentStates = new Set(["HQ001", "HQ002", "HQ003", "HQ004", "3F000", "42P01", "42883", "42501"]);

/** Classes of SQLSTATEs about values: "data exception" and "program limit exceeded". */
const invalidClasses = new Set(["22", "54"]);

/**
 * A queue over SQL. Statements are self-contained and use no session state, so they work behind a pooler in transaction
 * mode. Arrays are sent as text, which every driver supports.
 */
export function createSqlBackend(pool: Queryable, queue: string): Backend {
  // Shared by all workers of this queue object, so that only the first one starts with a full scan.
  const scans = createClaimScans();
  const idsOf = async (text: string, values: unknown[], client = pool): Promise<string[]> =>
    (await client.query(text, values)).rows.map(({ id }) => String(id));
  const settle = async (text: string, claims: readonly Claim[], ...more: unknown[]) =>
    claims.length === 0 ? new Set<string>() : new Set(await idsOf(text, [queue, ...arraysOf(claims), ...more]));
  return {
    claimMax: 1000,
    enqueue: (payloads, delaySeconds, within) =>
      idsOf(statements.enqueue, [queue, JSON.stringify(payloads), delaySeconds], within as Queryable | undefined),
    async visibilitySeconds() {
      const [row] = (await pool.query(statements.visibility, [queue])).rows;
      return Number(row?.["seconds"] ?? 30);
    },
    async claim({ max, visibilitySeconds, acks }) {
      const token = crypto.randomUUID();
      const scan = scans.next();
      const bounds = [scan.afterId, scan.isFull ? "-infinity" : "infinity"];
      const values = [queue, token, ...arraysOf(acks), max, visibilitySeconds, ...bounds];
      const { rows } = await pool.query(statements.claim, values).catch((error: unknown) => {
        scan.failed();
        throw error;
      });
      const claimed = rows.filter(({ outcome }) => outcome === "claimed");
      scan.found(
        claimed.map((row) => ({ id: String(row["id"]), isInOrder: row["in_order"] === true })),
        max,
      );
      return {
        messages: claimed.map((row) => messageOf(row, token)),
        lost: new Set(rows.filter(({ outcome }) => outcome === "lost").map(({ id }) => String(id))),
      };
    },
    ack: (claims) => settle(statements.ack, claims),
    nack: async ({ id, token }, { delaySeconds, error, discard }) =>
      new Set(await idsOf(statements.nack, [queue, token, `{${id}}`, delaySeconds, error ?? null, discard])),
    extend: (claims, seconds) => settle(statements.extend, claims, seconds),
    release: (claims) => settle(statements.release, claims),
    isPermanent: (error) => permanentStates.has(stateOf(error)),
    isInvalid: (error) => invalidClasses.has(stateOf(error).slice(0, 2)),
  };
}

/** The SQLSTATE of an error; empty for other errors. */
function stateOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** PostgreSQL array literals. Ids are digits and tokens are UUIDs, so neither needs quotes. */
function arraysOf(claims: readonly Claim[]): [ids: string, tokens: string] {
  return [`{${claims.map(({ id }) => id).join()}}`, `{${claims.map(({ token }) => token).join()}}`];
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

/** The range of messages that one claim reads, and what it found. */
export interface ClaimScan {
  /** Messages in order with ids up to this one are skipped. */
  readonly afterId: string;
  /** True if the claim also reads delayed messages that became visible, and removes exhausted ones. */
  readonly isFull: boolean;
  found(messages: readonly { readonly id: string; readonly isInOrder: boolean }[], max: number): void;
  /** Reports that the claim failed. */
  failed(): void;
}

const minFullScanIntervalMs = 1000;
/** The interval of full scans is at least their duration times this factor, so they take at most 5% of the time. */
const minIntervalFactor = 20;

/**
 * Chooses where claims start to read. Vacuum cannot remove deleted rows while an old snapshot exists, and each claim
 * would skip them again; therefore most claims start at the id where the last one ended. Messages with lower ids, from
 * a transaction that committed late or with a delay, are found by full scans: once a second, less often when they take
 * long, and with each claim as long as they fill their batch.
 */
function createClaimScans(now: () => number = () => performance.now()): { next(): ClaimScan } {
  let floor = 0n;
  let nextFullMs = now();
  return {
    next() {
      const startedAt = now();
      const isFull = startedAt >= nextFullMs;
      if (isFull) nextFullMs = Number.POSITIVE_INFINITY;
      return {
        afterId: isFull ? "0" : String(floor),
        isFull,
        failed() {
          if (isFull) nextFullMs = now();
        },
        found(messages, max) {
          const inOrder = messages.filter((message) => message.isInOrder);
          // Another worker may release a message with a lower id; the next full scan finds it.
          for (const { id } of inOrder) if (BigInt(id) > floor) floor = BigInt(id);
          if (!isFull) return;
          const hasMore = messages.length >= max && inOrder.length < messages.length;
          nextFullMs = hasMore
            ? now()
            : now() + Math.max(minFullScanIntervalMs, (now() - startedAt) * minIntervalFactor);
        },
      };
    },
  };
}
