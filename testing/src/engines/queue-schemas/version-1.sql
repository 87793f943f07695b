-- Version 1 of schema mdb_queue as it was given out: services of that time still have it. Never changed.

CREATE TABLE mdb_queue.meta (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  service_id text NOT NULL
);

CREATE TABLE mdb_queue.queues (
  name text COLLATE "C" PRIMARY KEY CHECK (name ~ '^[a-z0-9_-]{1,128}$'),
  visibility_timeout_seconds integer NOT NULL DEFAULT 30 CHECK (visibility_timeout_seconds BETWEEN 1 AND 43200),
  max_attempts integer NOT NULL DEFAULT 5 CHECK (max_attempts BETWEEN 1 AND 100),
  dlq_enabled boolean NOT NULL DEFAULT true,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  deleted_at timestamptz,
  id text NOT NULL UNIQUE,
  dlq_flips bigint[] NOT NULL DEFAULT '{}',
  purge_barrier xid8,
  purged_at timestamptz
);

CREATE TABLE mdb_queue.messages (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue_name text COLLATE "C" NOT NULL,
  payload jsonb NOT NULL,
  max_attempts integer NOT NULL CHECK (max_attempts BETWEEN 1 AND 100),
  visible_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  attempt_count integer NOT NULL DEFAULT 0 CHECK (attempt_count >= 0),
  claimed_by text,
  enqueued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_error text
) WITH (fillfactor = 90,
  autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
  toast.autovacuum_vacuum_scale_factor = 0.01, toast.autovacuum_vacuum_threshold = 1000,
  toast.autovacuum_vacuum_cost_delay = 0);

CREATE TABLE mdb_queue.dead_messages (
  id bigint PRIMARY KEY,
  queue_name text COLLATE "C" NOT NULL,
  payload jsonb NOT NULL,
  max_attempts integer NOT NULL,
  visible_at timestamptz NOT NULL,
  attempt_count integer NOT NULL,
  claimed_by text,
  enqueued_at timestamptz NOT NULL,
  last_error text,
  died_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE mdb_queue.tasks (
  id text COLLATE "C" PRIMARY KEY,
  queue_name text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  body_hash text NOT NULL,
  state text NOT NULL CHECK (state IN ('pending', 'running', 'completed', 'failed')),
  input jsonb,
  result jsonb,
  error text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX messages_fresh ON mdb_queue.messages (queue_name, id)
     WHERE attempt_count = 0 AND visible_at <= enqueued_at;

CREATE INDEX messages_due ON mdb_queue.messages (queue_name, visible_at)
     WHERE (attempt_count > 0 OR visible_at > enqueued_at) AND attempt_count < max_attempts;

CREATE INDEX messages_last ON mdb_queue.messages (queue_name, visible_at) WHERE attempt_count >= max_attempts;

CREATE INDEX dead_messages_order ON mdb_queue.dead_messages (queue_name, id);

CREATE INDEX dead_messages_age ON mdb_queue.dead_messages (died_at);

CREATE INDEX tasks_age ON mdb_queue.tasks (created_at);

CREATE INDEX tasks_open ON mdb_queue.tasks (created_at) WHERE state IN ('pending', 'running');

CREATE FUNCTION mdb_queue.check_queues() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  missing text;
BEGIN
  SELECT f.queue_name INTO missing FROM (SELECT DISTINCT i.queue_name FROM inserted i) f
    WHERE NOT EXISTS (SELECT FROM mdb_queue.queues q WHERE q.name = f.queue_name AND q.deleted_at IS NULL) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'queue % is not active', missing USING ERRCODE = 'HQ001';
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' AND EXISTS (
    SELECT FROM mdb_queue.queues q JOIN (SELECT DISTINCT i.queue_name FROM inserted i) f ON q.name = f.queue_name
      WHERE q.xmax <> '0'::xid AND pg_xact_status((pg_current_xact_id()::text::bigint - age(q.xmax)::bigint)::text::xid8) <> 'aborted'
  ) THEN
    RAISE EXCEPTION 'could not serialize access: the queue has been changed' USING ERRCODE = '40001';
  END IF;
  RETURN NULL;
END
$body$;

CREATE TRIGGER check_queues AFTER INSERT ON mdb_queue.messages
  REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION mdb_queue.check_queues();

CREATE FUNCTION mdb_queue.check_move() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
  IF NOT EXISTS (SELECT FROM mdb_queue.queues q WHERE q.name = NEW.queue_name AND q.deleted_at IS NULL) THEN
    RAISE EXCEPTION 'queue % is not active', NEW.queue_name USING ERRCODE = 'HQ001';
  END IF;
  RETURN NEW;
END
$body$;

CREATE TRIGGER check_move BEFORE UPDATE OF queue_name ON mdb_queue.messages
  FOR EACH ROW WHEN (NEW.queue_name <> OLD.queue_name) EXECUTE FUNCTION mdb_queue.check_move();

CREATE FUNCTION mdb_queue.fill_attempts() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
  SELECT q.max_attempts INTO NEW.max_attempts FROM mdb_queue.queues q
    WHERE q.name = NEW.queue_name AND q.deleted_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'queue % is not active', NEW.queue_name USING ERRCODE = 'HQ001';
  END IF;
  RETURN NEW;
END
$body$;

CREATE TRIGGER fill_attempts BEFORE INSERT ON mdb_queue.messages
  FOR EACH ROW WHEN (NEW.max_attempts IS NULL) EXECUTE FUNCTION mdb_queue.fill_attempts();

CREATE FUNCTION mdb_queue.check_payload() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  printed text := NEW.payload::text;
  bytes integer := octet_length(printed);
BEGIN
  IF jsonb_typeof(NEW.payload) <> 'object' THEN
    RAISE EXCEPTION 'payload is no JSON object' USING ERRCODE = 'HQ002';
  END IF;
  IF bytes <= 393216 THEN
    printed := regexp_replace(printed, '"([^"\\]|\\.)*"', '', 'g');
    bytes := bytes - (length(printed) - length(replace(printed, ' ', '')));
  END IF;
  IF bytes > 262144 THEN
    RAISE EXCEPTION 'payload has over 262144 bytes' USING ERRCODE = 'HQ003';
  END IF;
  RETURN NEW;
END
$body$;

CREATE TRIGGER check_payload BEFORE INSERT OR UPDATE OF payload ON mdb_queue.messages
  FOR EACH ROW WHEN (jsonb_typeof(NEW.payload) <> 'object' OR octet_length(NEW.payload::text) > 262144)
  EXECUTE FUNCTION mdb_queue.check_payload();

CREATE OR REPLACE FUNCTION mdb_queue.enqueue(queue text, payload jsonb, delay_seconds double precision DEFAULT 0) RETURNS bigint LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp  AS $body$
#variable_conflict use_column
DECLARE
  attempts integer;
  at timestamptz := clock_timestamp();
  made bigint;
BEGIN
  IF delay_seconds IS NULL OR delay_seconds < 0 OR delay_seconds > 43200 THEN
    RAISE EXCEPTION 'delay_seconds is 0 to 43200' USING ERRCODE = 'HQ004';
  END IF;
  SELECT q.max_attempts INTO attempts FROM mdb_queue.queues q WHERE q.name = queue AND q.deleted_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'queue % is not active', queue USING ERRCODE = 'HQ001';
  END IF;
  INSERT INTO mdb_queue.messages (queue_name, payload, max_attempts, visible_at, enqueued_at)
    VALUES (queue, enqueue.payload, attempts, at + make_interval(secs => delay_seconds), at)
    RETURNING id INTO made;
  RETURN made;
END
$body$;

CREATE OR REPLACE FUNCTION mdb_queue.enqueue_many(queue text, payloads jsonb[], delay_seconds double precision DEFAULT 0) RETURNS SETOF bigint LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp  AS $body$
#variable_conflict use_column
DECLARE
  attempts integer;
  at timestamptz := clock_timestamp();
BEGIN
  IF delay_seconds IS NULL OR delay_seconds < 0 OR delay_seconds > 43200 THEN
    RAISE EXCEPTION 'delay_seconds is 0 to 43200' USING ERRCODE = 'HQ004';
  END IF;
  SELECT q.max_attempts INTO attempts FROM mdb_queue.queues q WHERE q.name = queue AND q.deleted_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'queue % is not active', queue USING ERRCODE = 'HQ001';
  END IF;
  RETURN QUERY INSERT INTO mdb_queue.messages AS m (queue_name, payload, max_attempts, visible_at, enqueued_at)
    SELECT queue, p.payload, attempts, at + make_interval(secs => delay_seconds), at
      FROM unnest(payloads) WITH ORDINALITY AS p (payload, place) ORDER BY p.place
    RETURNING m.id;
END
$body$;

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
    DELETE FROM mdb_queue.messages m USING over o WHERE m.id = o.id RETURNING m.*
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
    after_id bigint DEFAULT 0, due_after timestamptz DEFAULT '-infinity') RETURNS TABLE (id bigint, payload jsonb, attempt_count integer, enqueued_at timestamptz, visible_at timestamptz,
    in_order boolean) LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = on
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
DECLARE
  at timestamptz;
  hidden interval;
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
END
$body$;

CREATE OR REPLACE FUNCTION mdb_queue.ack_and_claim(queue text, worker text, done_ids bigint[], done_by text[], most integer DEFAULT 1,
    visibility_seconds double precision DEFAULT NULL, after_id bigint DEFAULT 0, due_after timestamptz DEFAULT '-infinity') RETURNS TABLE (outcome text, id bigint, payload jsonb, attempt_count integer, enqueued_at timestamptz,
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

CREATE OR REPLACE FUNCTION mdb_queue.cut_error(error text) RETURNS text LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp  AS $body$
#variable_conflict use_column
DECLARE
  short text := left(error, 4096);
BEGIN
  WHILE octet_length(short) > 4096 LOOP
    short := left(short, -greatest((octet_length(short) - 4096) / 4, 1));
  END LOOP;
  RETURN short;
END
$body$;

CREATE OR REPLACE FUNCTION mdb_queue.ack(queue text, worker text, ids bigint[]) RETURNS TABLE (id bigint, done boolean) LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = on
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
BEGIN
  RETURN QUERY WITH changed AS (
    DELETE FROM mdb_queue.messages m
      WHERE m.id = ANY (ids) AND m.queue_name = queue AND m.claimed_by = worker RETURNING m.id
  ) SELECT i.id, EXISTS (SELECT FROM changed c WHERE c.id = i.id)
    FROM (SELECT DISTINCT u.id FROM unnest(ids) AS u (id)) AS i ORDER BY i.id;
END
$body$;

CREATE OR REPLACE FUNCTION mdb_queue.nack(queue text, worker text, ids bigint[], delay_seconds double precision DEFAULT 0, error text DEFAULT NULL,
    discard boolean DEFAULT false) RETURNS TABLE (id bigint, done boolean) LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = on
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
BEGIN
  IF delay_seconds IS NULL OR delay_seconds NOT BETWEEN 0 AND 43200 THEN
    RAISE EXCEPTION 'delay_seconds is 0 to 43200' USING ERRCODE = 'HQ004';
  END IF;
  RETURN QUERY WITH changed AS (
    UPDATE mdb_queue.messages m SET visible_at = clock_timestamp() + make_interval(secs => delay_seconds), claimed_by = NULL,
        last_error = mdb_queue.cut_error(error),
        max_attempts = CASE WHEN discard THEN least(m.max_attempts, greatest(m.attempt_count, 1)) ELSE m.max_attempts END
      WHERE m.id = ANY (ids) AND m.queue_name = queue AND m.claimed_by = worker RETURNING m.id
  ) SELECT i.id, EXISTS (SELECT FROM changed c WHERE c.id = i.id)
    FROM (SELECT DISTINCT u.id FROM unnest(ids) AS u (id)) AS i ORDER BY i.id;
END
$body$;

CREATE OR REPLACE FUNCTION mdb_queue.extend(queue text, worker text, ids bigint[], delay_seconds double precision) RETURNS TABLE (id bigint, done boolean) LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = on
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
BEGIN
  IF delay_seconds IS NULL OR delay_seconds NOT BETWEEN 0 AND 43200 THEN
    RAISE EXCEPTION 'delay_seconds is 0 to 43200' USING ERRCODE = 'HQ004';
  END IF;
  RETURN QUERY WITH changed AS (
    UPDATE mdb_queue.messages m SET visible_at = clock_timestamp() + make_interval(secs => delay_seconds)
      WHERE m.id = ANY (ids) AND m.queue_name = queue AND m.claimed_by = worker RETURNING m.id
  ) SELECT i.id, EXISTS (SELECT FROM changed c WHERE c.id = i.id)
    FROM (SELECT DISTINCT u.id FROM unnest(ids) AS u (id)) AS i ORDER BY i.id;
END
$body$;

CREATE OR REPLACE FUNCTION mdb_queue.stats(queue text) RETURNS TABLE (queue_name text, ready_messages bigint, inflight_messages bigint, dead_messages bigint,
    oldest_age_seconds double precision, delayed_messages bigint) LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp  AS $body$
#variable_conflict use_column
DECLARE
  at timestamptz := clock_timestamp();
BEGIN
  IF NOT EXISTS (SELECT FROM mdb_queue.queues q WHERE q.name = queue AND q.deleted_at IS NULL) THEN
    RAISE EXCEPTION 'queue % is not active', queue USING ERRCODE = 'HQ001';
  END IF;
  RETURN QUERY WITH m AS (SELECT m.* FROM mdb_queue.messages m WHERE m.queue_name = queue AND m.attempt_count = 0 AND m.visible_at <= m.enqueued_at UNION ALL SELECT m.* FROM mdb_queue.messages m WHERE m.queue_name = queue AND (m.attempt_count > 0 OR m.visible_at > m.enqueued_at) AND m.attempt_count < m.max_attempts UNION ALL SELECT m.* FROM mdb_queue.messages m WHERE m.queue_name = queue AND m.attempt_count >= m.max_attempts)
    SELECT queue,
      count(*) FILTER (WHERE m.visible_at <= at AND m.attempt_count < m.max_attempts),
      count(*) FILTER (WHERE m.visible_at > at AND m.claimed_by IS NOT NULL),
      (SELECT count(*) FROM mdb_queue.dead_messages d WHERE d.queue_name = queue),
      -- greatest() passes over NULL, which is the age without a ready message.
      CASE WHEN count(*) FILTER (WHERE m.visible_at <= at AND m.attempt_count < m.max_attempts) > 0 THEN
        greatest(extract(epoch FROM at - min(m.enqueued_at)
          FILTER (WHERE m.visible_at <= at AND m.attempt_count < m.max_attempts)), 0)::double precision END,
      count(*) FILTER (WHERE m.visible_at > at AND m.claimed_by IS NULL)
    FROM m;
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
    DELETE FROM mdb_queue.dead_messages d USING picked p WHERE d.id = p.id RETURNING d.*
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
    DELETE FROM mdb_queue.dead_messages d USING picked p WHERE d.id = p.id;
  ELSE
    WITH fresh AS MATERIALIZED (SELECT m.id FROM mdb_queue.messages m WHERE m.queue_name = queue AND m.attempt_count = 0 AND m.visible_at <= m.enqueued_at LIMIT most FOR UPDATE SKIP LOCKED), due AS MATERIALIZED (SELECT m.id FROM mdb_queue.messages m WHERE m.queue_name = queue AND (m.attempt_count > 0 OR m.visible_at > m.enqueued_at) AND m.attempt_count < m.max_attempts LIMIT most FOR UPDATE SKIP LOCKED),
      last AS MATERIALIZED (SELECT m.id FROM mdb_queue.messages m WHERE m.queue_name = queue AND m.attempt_count >= m.max_attempts LIMIT most FOR UPDATE SKIP LOCKED), picked AS MATERIALIZED (
        SELECT id FROM fresh UNION ALL SELECT id FROM due UNION ALL SELECT id FROM last LIMIT most
      )
    DELETE FROM mdb_queue.messages m USING picked p WHERE m.id = p.id;
  END IF;
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END
$body$;

REVOKE ALL ON SCHEMA mdb_queue FROM PUBLIC;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mdb_queue FROM PUBLIC;

GRANT USAGE ON SCHEMA mdb_queue TO holdfast_queue, holdfast_queue_agent;

GRANT SELECT ON mdb_queue.queues TO holdfast_queue;

GRANT SELECT, INSERT, UPDATE, DELETE ON mdb_queue.messages, mdb_queue.dead_messages TO holdfast_queue;

GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA mdb_queue TO holdfast_queue, holdfast_queue_agent;

GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA mdb_queue TO holdfast_queue_agent;

GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA mdb_queue TO holdfast_queue_agent;
