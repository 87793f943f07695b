-- What version 4 added to version 3, as it was given out. Never changed.

CREATE OR REPLACE FUNCTION mdb_queue.end_look(queue text, most integer, begun timestamptz, entries bigint, whole_at timestamptz, last_id bigint,
    after_id bigint, due_after timestamptz) RETURNS void LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = on
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
DECLARE
  now timestamptz := clock_timestamp();
  due_at timestamptz;
  next_id bigint;
BEGIN
  IF after_id = 0 THEN
    IF coalesce(pg_stat_get_xact_tuples_returned('mdb_queue.messages_fresh'::regclass), 0) + coalesce(pg_stat_get_xact_tuples_returned('mdb_queue.messages_due'::regclass), 0) + coalesce(pg_stat_get_xact_tuples_returned('mdb_queue.messages_last'::regclass), 0) - entries <= 1000 + 3 * most THEN
      IF whole_at IS NOT NULL THEN
        PERFORM set_config('mdb_queue.look_' || to_hex(hashtextextended(queue, 0)), '', false);
      END IF;
      RETURN;
    END IF;
    whole_at := now + least(greatest(20 * (now - begun), interval '1 s'), interval '1 min');
  END IF;
  SELECT least(
    (SELECT m.visible_at FROM mdb_queue.messages m WHERE m.queue_name = queue AND (m.attempt_count > 0 OR m.visible_at > m.enqueued_at) AND m.attempt_count < m.max_attempts
      AND m.visible_at > due_after AND m.visible_at <= now ORDER BY m.visible_at LIMIT 1),
    (SELECT m.visible_at FROM mdb_queue.messages m WHERE m.queue_name = queue AND m.attempt_count >= m.max_attempts
      AND m.visible_at > due_after AND m.visible_at <= now ORDER BY m.visible_at LIMIT 1),
    begun - interval '100 ms') - interval '1 microsecond' INTO due_at;
  SELECT m.id - 1 INTO next_id FROM mdb_queue.messages m WHERE (m.queue_name, m.id) > (queue, after_id) AND m.queue_name <= queue AND m.attempt_count = 0 AND m.visible_at <= m.enqueued_at
    ORDER BY m.queue_name, m.id LIMIT 1;
  PERFORM set_config('mdb_queue.look_' || to_hex(hashtextextended(queue, 0)), format('%s %s %s', greatest(coalesce(next_id, last_id), 0),
    greatest((extract(epoch FROM due_at) * 1000000)::bigint, 0), (extract(epoch FROM whole_at) * 1000000)::bigint), false);
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
      WHERE (m.queue_name, m.id) > (queue, after_id) AND m.queue_name <= queue AND m.visible_at <= at
        AND m.attempt_count = 0 AND m.visible_at <= m.enqueued_at
      ORDER BY m.queue_name, m.id LIMIT most - (SELECT count(*) FROM due) FOR UPDATE SKIP LOCKED
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
    SELECT d.id FROM mdb_queue.dead_messages d WHERE (d.queue_name, d.id) > (queue, 0) AND d.queue_name <= queue AND (ids IS NULL OR d.id = ANY (ids))
      ORDER BY d.queue_name, d.id LIMIT most FOR UPDATE SKIP LOCKED
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
      SELECT d.id FROM mdb_queue.dead_messages d WHERE (d.queue_name, d.id) > (queue, 0) AND d.queue_name <= queue
        ORDER BY d.queue_name, d.id LIMIT most FOR UPDATE SKIP LOCKED
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
