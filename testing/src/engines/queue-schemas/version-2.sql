-- What version 2 added to version 1, as it was given out. Never changed.

CREATE OR REPLACE FUNCTION mdb_queue.begin_look(queue text) RETURNS TABLE (after_id bigint, due_after timestamptz, whole_at timestamptz, begun timestamptz, entries bigint,
    last_id bigint) LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp  AS $body$
#variable_conflict use_column
DECLARE
  known text := current_setting('mdb_queue.look_' || to_hex(hashtextextended(queue, 0)), true);
  parts text[];
BEGIN
  begun := clock_timestamp();
  entries := coalesce(pg_stat_get_xact_tuples_returned('mdb_queue.messages_fresh'::regclass), 0) + coalesce(pg_stat_get_xact_tuples_returned('mdb_queue.messages_due'::regclass), 0) + coalesce(pg_stat_get_xact_tuples_returned('mdb_queue.messages_last'::regclass), 0);
  -- Before anything is looked at: what gets a larger id is never skipped.
  last_id := coalesce(pg_sequence_last_value('mdb_queue.messages_id_seq'), 0);
  after_id := 0;
  due_after := '-infinity';
  IF known ~ '^[0-9]{1,18} [0-9]{1,16} [0-9]{1,16}$' THEN
    parts := string_to_array(known, ' ');
    whole_at := to_timestamp(parts[3]::double precision / 1000000);
    IF whole_at > begun AND whole_at < begun + interval '61 s' THEN
      after_id := parts[1]::bigint;
      due_after := to_timestamp(parts[2]::double precision / 1000000);
    END IF;
  END IF;
  RETURN NEXT;
END
$body$;

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
  SELECT m.id - 1 INTO next_id FROM mdb_queue.messages m WHERE m.queue_name = queue AND m.attempt_count = 0 AND m.visible_at <= m.enqueued_at
    AND m.id > after_id ORDER BY m.id LIMIT 1;
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
      WHERE m.queue_name = queue AND m.id > after_id AND m.visible_at <= at
        AND m.attempt_count = 0 AND m.visible_at <= m.enqueued_at
      ORDER BY m.id LIMIT most - (SELECT count(*) FROM due) FOR UPDATE SKIP LOCKED
  ), claimed AS (
    UPDATE mdb_queue.messages m
      SET visible_at = at + hidden, attempt_count = m.attempt_count + 1, claimed_by = worker
      FROM (SELECT d.id, false AS in_order FROM due d UNION ALL SELECT f.id, true FROM fresh f) AS taken
      WHERE m.id = taken.id
      RETURNING m.id, m.payload, m.attempt_count, m.enqueued_at, m.visible_at, taken.in_order
  )
  SELECT c.id, c.payload, c.attempt_count, c.enqueued_at, c.visible_at, c.in_order FROM claimed c ORDER BY c.id;
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
      DELETE FROM mdb_queue.messages m USING unnest(done_ids, done_by) AS d (id, worker)
        WHERE m.id = d.id AND m.claimed_by = d.worker AND m.queue_name = queue RETURNING m.id
    )
    SELECT 'lost', d.id, NULL::jsonb, NULL::integer, NULL::timestamptz, NULL::timestamptz, NULL::boolean
      FROM unnest(done_ids) AS d (id) WHERE NOT EXISTS (SELECT FROM done WHERE done.id = d.id);
  END IF;
  RETURN QUERY SELECT 'claimed', c.* FROM mdb_queue.claim(queue, worker, most, visibility_seconds, after_id, due_after) c;
END
$body$;

GRANT SELECT ON SEQUENCE mdb_queue.messages_id_seq TO holdfast_queue;

REVOKE ALL ON SCHEMA mdb_queue FROM PUBLIC;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mdb_queue FROM PUBLIC;

GRANT USAGE ON SCHEMA mdb_queue TO holdfast_queue, holdfast_queue_agent;

GRANT SELECT ON mdb_queue.queues TO holdfast_queue;

GRANT SELECT, INSERT, UPDATE, DELETE ON mdb_queue.messages, mdb_queue.dead_messages TO holdfast_queue;

GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA mdb_queue TO holdfast_queue, holdfast_queue_agent;

GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA mdb_queue TO holdfast_queue_agent;

GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA mdb_queue TO holdfast_queue_agent;
