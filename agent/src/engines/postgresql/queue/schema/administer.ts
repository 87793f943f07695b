import { planSettings, type SqlFunction } from "./function.ts";
import { refusals, schema } from "./names.ts";
import { inOrderAfter, orderOf, partitions } from "./tables.ts";

// Services have these bodies, so their names stay until a later version replaces them.
/* oxlint-disable holdfast/texts */

const checkQueue = `IF NOT EXISTS (SELECT FROM ${schema}.queues q WHERE q.name = queue AND q.deleted_at IS NULL) THEN
    RAISE EXCEPTION 'queue % is not active', queue USING ERRCODE = '${refusals.queueNotActive}';
  END IF;`;

/**
 * Exact counts of a queue, and the age of its oldest ready message. The time is proportional to the queue's size; the
 * caller sets the statement_timeout.
 */
export const stats: SqlFunction = {
  name: "stats",
  parameters: "queue text",
  returns: `TABLE (queue_name text, ready_messages bigint, inflight_messages bigint, dead_messages bigint,
    oldest_age_seconds double precision, delayed_messages bigint)`,
  body: `DECLARE
  at timestamptz := clock_timestamp();
BEGIN
  ${checkQueue}
  RETURN QUERY WITH m AS (${Object.values(partitions)
    .map((slice) => `SELECT m.* FROM ${schema}.messages m WHERE m.queue_name = queue AND ${slice}`)
    .join(" UNION ALL ")})
    SELECT queue,
      count(*) FILTER (WHERE m.visible_at <= at AND m.attempt_count < m.max_attempts),
      count(*) FILTER (WHERE m.visible_at > at AND m.claimed_by IS NOT NULL),
      (SELECT count(*) FROM ${schema}.dead_messages d WHERE d.queue_name = queue),
      -- greatest() passes over NULL, which is the age without a ready message.
      CASE WHEN count(*) FILTER (WHERE m.visible_at <= at AND m.attempt_count < m.max_attempts) > 0 THEN
        greatest(extract(epoch FROM at - min(m.enqueued_at)
          FILTER (WHERE m.visible_at <= at AND m.attempt_count < m.max_attempts)), 0)::double precision END,
      count(*) FILTER (WHERE m.visible_at > at AND m.claimed_by IS NULL)
    FROM m;
END`,
};

/**
 * Makes up to `most` dead messages ready again, oldest first, with their ids and without attempts: all, or the messages
 * with these `ids`. Skips locked rows. Returns the count.
 */
export const redrive: SqlFunction = {
  name: "redrive",
  parameters: "queue text, ids bigint[] DEFAULT NULL, most integer DEFAULT 10000",
  returns: "bigint",
  settings: planSettings,
  body: `DECLARE
  moved bigint;
BEGIN
  ${checkQueue}
  WITH picked AS MATERIALIZED (
    SELECT d.id FROM ${schema}.dead_messages d WHERE ${inOrderAfter("d", "0")} AND (ids IS NULL OR d.id = ANY (ids))
      ORDER BY ${orderOf("d")} LIMIT most FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM ${schema}.dead_messages d WHERE d.id = ANY (ARRAY(SELECT p.id FROM picked p)) RETURNING d.*
  ), back AS (
    INSERT INTO ${schema}.messages (id, queue_name, payload, max_attempts, visible_at, enqueued_at)
      OVERRIDING SYSTEM VALUE
      SELECT g.id, g.queue_name, g.payload, g.max_attempts, clock_timestamp(), g.enqueued_at FROM gone g RETURNING 1
  )
  SELECT count(*) INTO moved FROM back;
  RETURN moved;
END`,
};

/** Subquery: up to `most` messages of a queue from one partition. */
const pickedFrom = (slice: string) =>
  `(SELECT m.id FROM ${schema}.messages m WHERE m.queue_name = queue AND ${slice} LIMIT most FOR UPDATE SKIP LOCKED)`;

/** Purges up to `most` messages in any state (or dead letters), skipping locked rows. Returns the count. */
export const purge: SqlFunction = {
  name: "purge",
  parameters: "queue text, dead boolean DEFAULT false, most integer DEFAULT 10000",
  returns: "bigint",
  settings: planSettings,
  body: `DECLARE
  gone bigint;
BEGIN
  IF dead THEN
    WITH picked AS MATERIALIZED (
      SELECT d.id FROM ${schema}.dead_messages d WHERE ${inOrderAfter("d", "0")}
        ORDER BY ${orderOf("d")} LIMIT most FOR UPDATE SKIP LOCKED
    )
    DELETE FROM ${schema}.dead_messages d WHERE d.id = ANY (ARRAY(SELECT p.id FROM picked p));
  ELSE
    WITH fresh AS MATERIALIZED ${pickedFrom(partitions.unclaimed)}, due AS MATERIALIZED ${pickedFrom(partitions.due)},
      last AS MATERIALIZED ${pickedFrom(partitions.last)}, picked AS MATERIALIZED (
        SELECT id FROM fresh UNION ALL SELECT id FROM due UNION ALL SELECT id FROM last LIMIT most
      )
    DELETE FROM ${schema}.messages m WHERE m.id = ANY (ARRAY(SELECT p.id FROM picked p));
  END IF;
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END`,
};
