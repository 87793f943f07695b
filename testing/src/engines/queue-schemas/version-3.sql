-- What version 3 added to version 2, as it was given out. Never changed.

CREATE OR REPLACE FUNCTION mdb_queue.sweep(queue text, most integer DEFAULT 100, due_after timestamptz DEFAULT '-infinity') RETURNS integer LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = on
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
DECLARE
  swept integer;
  -- An index takes no bound that may change while it is read.
  at timestamptz := clock_timestamp();
BEGIN
  WITH over AS MATERIALIZED (
    SELECT m.id FROM mdb_queue.messages m
      WHERE m.queue_name = queue AND m.attempt_count >= m.max_attempts
        AND m.visible_at > due_after AND m.visible_at <= at
      ORDER BY m.visible_at LIMIT most FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM mdb_queue.messages m WHERE m.id = ANY (ARRAY(SELECT o.id FROM over o)) RETURNING m.*
  ), kept AS (
    INSERT INTO mdb_queue.dead_messages
      (id, queue_name, payload, max_attempts, visible_at, attempt_count, claimed_by, enqueued_at, last_error, died_at)
      SELECT g.id, g.queue_name, g.payload, g.max_attempts, g.visible_at, g.attempt_count, g.claimed_by, g.enqueued_at,
          g.last_error, clock_timestamp()
        FROM gone g JOIN mdb_queue.queues q ON q.name = g.queue_name AND q.deleted_at IS NULL WHERE (q.dlq_enabled <> (SELECT count(*) % 2 = 1 FROM unnest(q.dlq_flips) AS f (id) WHERE f.id >= g.id))
  )
  SELECT count(*) INTO swept FROM gone;
  RETURN swept;
END
$body$;

CREATE OR REPLACE FUNCTION mdb_queue.claim(queue text, worker text, most integer DEFAULT 1, visibility_seconds double precision DEFAULT NULL,
    after_id bigint DEFAULT NULL, due_after timestamptz DEFAULT NULL) RETURNS TABLE (id bigint, payload jsonb, attempt_count integer, enqueued_at timestamptz, visible_at timestamptz,
    in_order boolean) LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = on
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
DECLARE
  at timestamptz;
  hidden interval;
  remembers boolean := after_id IS NULL AND due_after IS NULL;
  look record;
BEGIN
  IF worker IS NULL OR most NOT BETWEEN 1 AND 10000 OR visibility_seconds NOT BETWEEN 0.001 AND 43200 THEN
    RAISE EXCEPTION 'a claim names its worker, 1 to 10000 messages and at most 43200 seconds'
      USING ERRCODE = 'HQ004';
  END IF;
  SELECT make_interval(secs => coalesce(visibility_seconds, q.visibility_timeout_seconds)) INTO hidden
    FROM mdb_queue.queues q WHERE q.name = queue AND q.deleted_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'queue % is not active', queue USING ERRCODE = 'HQ001';
  END IF;
  IF remembers THEN
    SELECT * INTO look FROM mdb_queue.begin_look(queue);
    after_id := look.after_id;
    due_after := look.due_after;
  END IF;
  after_id := coalesce(after_id, 0);
  due_after := coalesce(due_after, '-infinity');
  IF due_after < 'infinity' THEN
    PERFORM mdb_queue.sweep(queue, 100, due_after);
  END IF;
  at := clock_timestamp();
  RETURN QUERY
  WITH due AS MATERIALIZED (
    SELECT m.id FROM mdb_queue.messages m
      WHERE m.queue_name = queue AND m.visible_at > due_after AND m.visible_at <= at
        AND (m.attempt_count > 0 OR m.visible_at > m.enqueued_at) AND m.attempt_count < m.max_attempts
      ORDER BY m.visible_at LIMIT most FOR UPDATE SKIP LOCKED
  ), fresh AS MATERIALIZED (
    SELECT m.id FROM mdb_queue.messages m
      WHERE m.queue_name = queue AND m.id > after_id AND m.visible_at <= at
        AND m.attempt_count = 0 AND m.visible_at <= m.enqueued_at
      ORDER BY m.id LIMIT most - (SELECT count(*) FROM due) FOR UPDATE SKIP LOCKED
  ), claimed AS (
    UPDATE mdb_queue.messages m
      SET visible_at = at + hidden, attempt_count = m.attempt_count + 1, claimed_by = worker
      WHERE m.id = ANY (ARRAY(SELECT d.id FROM due d UNION ALL SELECT f.id FROM fresh f))
      RETURNING m.id, m.payload, m.attempt_count, m.enqueued_at, m.visible_at
  )
  SELECT c.id, c.payload, c.attempt_count, c.enqueued_at, c.visible_at, c.id IN (SELECT f.id FROM fresh f)
    FROM claimed c ORDER BY c.id;
  IF remembers THEN
    PERFORM mdb_queue.end_look(queue, most, look.begun, look.entries, look.whole_at, look.last_id, after_id, due_after);
  END IF;
END
$body$;

CREATE OR REPLACE FUNCTION mdb_queue.ack_and_claim(queue text, worker text, done_ids bigint[], done_by text[], most integer DEFAULT 1,
    visibility_seconds double precision DEFAULT NULL, after_id bigint DEFAULT NULL, due_after timestamptz DEFAULT NULL) RETURNS TABLE (outcome text, id bigint, payload jsonb, attempt_count integer, enqueued_at timestamptz,
    visible_at timestamptz, in_order boolean) LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = on
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
BEGIN
  IF cardinality(done_ids) > 0 THEN
    RETURN QUERY WITH done AS (
      -- IS TRUE keeps the pairs from becoming a join.
      DELETE FROM mdb_queue.messages m WHERE m.id = ANY (done_ids) AND m.queue_name = queue AND ((m.id, m.claimed_by)
        IN (SELECT d.id, d.worker FROM unnest(done_ids, done_by) AS d (id, worker))) IS TRUE RETURNING m.id
    )
    SELECT 'lost', d.id, NULL::jsonb, NULL::integer, NULL::timestamptz, NULL::timestamptz, NULL::boolean
      FROM unnest(done_ids) AS d (id) WHERE (d.id IN (SELECT done.id FROM done)) IS NOT TRUE;
  END IF;
  RETURN QUERY SELECT 'claimed', c.* FROM mdb_queue.claim(queue, worker, most, visibility_seconds, after_id, due_after) c;
END
$body$;

CREATE OR REPLACE FUNCTION mdb_queue.redrive(queue text, ids bigint[] DEFAULT NULL, most integer DEFAULT 10000) RETURNS bigint LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = on
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
DECLARE
  moved bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM mdb_queue.queues q WHERE q.name = queue AND q.deleted_at IS NULL) THEN
    RAISE EXCEPTION 'queue % is not active', queue USING ERRCODE = 'HQ001';
  END IF;
  WITH picked AS MATERIALIZED (
    SELECT d.id FROM mdb_queue.dead_messages d WHERE d.queue_name = queue AND (ids IS NULL OR d.id = ANY (ids))
      ORDER BY d.id LIMIT most FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM mdb_queue.dead_messages d WHERE d.id = ANY (ARRAY(SELECT p.id FROM picked p)) RETURNING d.*
  ), back AS (
    INSERT INTO mdb_queue.messages (id, queue_name, payload, max_attempts, visible_at, enqueued_at)
      OVERRIDING SYSTEM VALUE
      SELECT g.id, g.queue_name, g.payload, g.max_attempts, clock_timestamp(), g.enqueued_at FROM gone g RETURNING 1
  )
  SELECT count(*) INTO moved FROM back;
  RETURN moved;
END
$body$;

CREATE OR REPLACE FUNCTION mdb_queue.purge(queue text, dead boolean DEFAULT false, most integer DEFAULT 10000) RETURNS bigint LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = on
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
DECLARE
  gone bigint;
BEGIN
  IF dead THEN
    WITH picked AS MATERIALIZED (
      SELECT d.id FROM mdb_queue.dead_messages d WHERE d.queue_name = queue ORDER BY d.id LIMIT most FOR UPDATE SKIP LOCKED
    )
    DELETE FROM mdb_queue.dead_messages d WHERE d.id = ANY (ARRAY(SELECT p.id FROM picked p));
  ELSE
    WITH fresh AS MATERIALIZED (SELECT m.id FROM mdb_queue.messages m WHERE m.queue_name = queue AND m.attempt_count = 0 AND m.visible_at <= m.enqueued_at LIMIT most FOR UPDATE SKIP LOCKED), due AS MATERIALIZED (SELECT m.id FROM mdb_queue.messages m WHERE m.queue_name = queue AND (m.attempt_count > 0 OR m.visible_at > m.enqueued_at) AND m.attempt_count < m.max_attempts LIMIT most FOR UPDATE SKIP LOCKED),
      last AS MATERIALIZED (SELECT m.id FROM mdb_queue.messages m WHERE m.queue_name = queue AND m.attempt_count >= m.max_attempts LIMIT most FOR UPDATE SKIP LOCKED), picked AS MATERIALIZED (
        SELECT id FROM fresh UNION ALL SELECT id FROM due UNION ALL SELECT id FROM last LIMIT most
      )
    DELETE FROM mdb_queue.messages m WHERE m.id = ANY (ARRAY(SELECT p.id FROM picked p));
  END IF;
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END
$body$;
