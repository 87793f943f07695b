import { planSettings, type SqlFunction } from "./function.ts";
import { refusals, schema } from "./names.ts";
import { inOrderAfter, orderOf } from "./tables.ts";

// Services have these bodies, so their names stay until a later version replaces them.
/* oxlint-disable holdfast/texts */

/** SQL condition: true if dlq_enabled was on when the message was enqueued, so that it is moved to dead_messages. */
const hadDlqEnabled =
  "(q.dlq_enabled <> (SELECT count(*) % 2 = 1 FROM unnest(q.dlq_flips) AS f (id) WHERE f.id >= g.id))";

/**
 * Rule 6: moves up to `most` messages whose last attempt has timed out to dead_messages, or deletes them. A message
 * that a worker still has is either invisible or locked.
 */
export const sweep: SqlFunction = {
  name: "sweep",
  parameters: "queue text, most integer DEFAULT 100, due_after timestamptz DEFAULT '-infinity'",
  returns: "integer",
  settings: planSettings,
  body: `DECLARE
  swept integer;
  -- An index takes no bound that may change while it is read.
  at timestamptz := clock_timestamp();
BEGIN
  WITH over AS MATERIALIZED (
    SELECT m.id FROM ${schema}.messages m
      WHERE m.queue_name = queue AND m.attempt_count >= m.max_attempts
        AND m.visible_at > due_after AND m.visible_at <= at
      ORDER BY m.visible_at LIMIT most FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM ${schema}.messages m WHERE m.id = ANY (ARRAY(SELECT o.id FROM over o)) RETURNING m.*
  ), kept AS (
    INSERT INTO ${schema}.dead_messages
      (id, queue_name, payload, max_attempts, visible_at, attempt_count, claimed_by, enqueued_at, last_error, died_at)
      SELECT g.id, g.queue_name, g.payload, g.max_attempts, g.visible_at, g.attempt_count, g.claimed_by, g.enqueued_at,
          g.last_error, clock_timestamp()
        FROM gone g JOIN ${schema}.queues q ON q.name = g.queue_name AND q.deleted_at IS NULL WHERE ${hadDlqEnabled}
  )
  SELECT count(*) INTO swept FROM gone;
  RETURN swept;
END`,
};

/**
 * Rule 2: claims messages, in order of id. Messages that became due come before those that were never delayed. Locked
 * rows are skipped, and MATERIALIZED enforces the limit when rows change concurrently.
 *
 * While an old snapshot keeps dead rows from being vacuumed, each claim from the beginning reads past them. `after_id`
 * skips never-claimed messages up to that id, `due_after` messages that were due by then; 'infinity' skips all due
 * messages and the sweep. Without both, the session stores where the next claim begins (scan-position.ts). A periodic
 * full scan finds skipped messages. `in_order` is true for messages that were never claimed or delayed: the next claim
 * may pass their largest id as `after_id`.
 */
export const claim: SqlFunction = {
  name: "claim",
  parameters: `queue text, worker text, most integer DEFAULT 1, visibility_seconds double precision DEFAULT NULL,
    after_id bigint DEFAULT NULL, due_after timestamptz DEFAULT NULL`,
  returns: `TABLE (id bigint, payload jsonb, attempt_count integer, enqueued_at timestamptz, visible_at timestamptz,
    in_order boolean)`,
  settings: planSettings,
  body: `DECLARE
  at timestamptz;
  hidden interval;
  remembers boolean := after_id IS NULL AND due_after IS NULL;
  look record;
BEGIN
  IF worker IS NULL OR most NOT BETWEEN 1 AND 10000 OR visibility_seconds NOT BETWEEN 0.001 AND 43200 THEN
    RAISE EXCEPTION 'a claim names its worker, 1 to 10000 messages and at most 43200 seconds'
      USING ERRCODE = '${refusals.outOfRange}';
  END IF;
  SELECT make_interval(secs => coalesce(visibility_seconds, q.visibility_timeout_seconds)) INTO hidden
    FROM ${schema}.queues q WHERE q.name = queue AND q.deleted_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'queue % is not active', queue USING ERRCODE = '${refusals.queueNotActive}';
  END IF;
  IF remembers THEN
    SELECT * INTO look FROM ${schema}.begin_look(queue);
    after_id := look.after_id;
    due_after := look.due_after;
  END IF;
  after_id := coalesce(after_id, 0);
  due_after := coalesce(due_after, '-infinity');
  IF due_after < 'infinity' THEN
    PERFORM ${schema}.sweep(queue, 100, due_after);
  END IF;
  at := clock_timestamp();
  RETURN QUERY
  WITH due AS MATERIALIZED (
    SELECT m.id FROM ${schema}.messages m
      WHERE m.queue_name = queue AND m.visible_at > due_after AND m.visible_at <= at
        AND (m.attempt_count > 0 OR m.visible_at > m.enqueued_at) AND m.attempt_count < m.max_attempts
      ORDER BY m.visible_at LIMIT most FOR UPDATE SKIP LOCKED
  ), fresh AS MATERIALIZED (
    SELECT m.id FROM ${schema}.messages m
      WHERE ${inOrderAfter("m", "after_id")} AND m.visible_at <= at
        AND m.attempt_count = 0 AND m.visible_at <= m.enqueued_at
      ORDER BY ${orderOf("m")} LIMIT most - (SELECT count(*) FROM due) FOR UPDATE SKIP LOCKED
  ), claimed AS (
    UPDATE ${schema}.messages m
      SET visible_at = at + hidden, attempt_count = m.attempt_count + 1, claimed_by = worker
      WHERE m.id = ANY (ARRAY(SELECT d.id FROM due d UNION ALL SELECT f.id FROM fresh f))
      RETURNING m.id, m.payload, m.attempt_count, m.enqueued_at, m.visible_at
  )
  SELECT c.id, c.payload, c.attempt_count, c.enqueued_at, c.visible_at, c.id IN (SELECT f.id FROM fresh f)
    FROM claimed c ORDER BY c.id;
  IF remembers THEN
    PERFORM ${schema}.end_look(queue, most, look.begun, look.entries, look.whole_at, look.last_id, after_id, due_after);
  END IF;
END`,
};

/**
 * One round trip of a worker: acks messages, each with the worker id of its claim, and claims new ones. Returns the new
 * messages as `claimed`, and as `lost` those that the worker no longer had.
 */
export const ackAndClaim: SqlFunction = {
  name: "ack_and_claim",
  parameters: `queue text, worker text, done_ids bigint[], done_by text[], most integer DEFAULT 1,
    visibility_seconds double precision DEFAULT NULL, after_id bigint DEFAULT NULL, due_after timestamptz DEFAULT NULL`,
  returns: `TABLE (outcome text, id bigint, payload jsonb, attempt_count integer, enqueued_at timestamptz,
    visible_at timestamptz, in_order boolean)`,
  settings: planSettings,
  body: `BEGIN
  IF cardinality(done_ids) > 0 THEN
    RETURN QUERY WITH done AS (
      -- IS TRUE keeps the pairs from becoming a join.
      DELETE FROM ${schema}.messages m WHERE m.id = ANY (done_ids) AND m.queue_name = queue AND ((m.id, m.claimed_by)
        IN (SELECT d.id, d.worker FROM unnest(done_ids, done_by) AS d (id, worker))) IS TRUE RETURNING m.id
    )
    SELECT 'lost', d.id, NULL::jsonb, NULL::integer, NULL::timestamptz, NULL::timestamptz, NULL::boolean
      FROM unnest(done_ids) AS d (id) WHERE (d.id IN (SELECT done.id FROM done)) IS NOT TRUE;
  END IF;
  RETURN QUERY SELECT 'claimed', c.* FROM ${schema}.claim(queue, worker, most, visibility_seconds, after_id, due_after) c;
END`,
};
