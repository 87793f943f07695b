import { schema } from "./names.ts";

/** `service_id` identifies the owner of the data: a fork or restored copy finds another service's id here. */
const meta = `CREATE TABLE ${schema}.meta (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version integer NOT NULL,
  service_id text NOT NULL
)`;

/**
 * Table of queues, with one row for each name, so that users' statements never find two. A row remains after the
 * queue's deletion until a new queue takes the name: `deleted_at` is when the queue stopped accepting messages,
 * `purged_at` when the last one was removed and the name became free. `purge_barrier` is the first transaction that saw
 * the deletion. `dlq_flips` lists the message ids at which dlq_enabled changed: a message has the value of its time.
 */
const queues = `CREATE TABLE ${schema}.queues (
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
)`;

/** Vacuum runs often: each claim reads past dead rows until they are removed. */
const storage = `fillfactor = 90,
  autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0,
  toast.autovacuum_vacuum_scale_factor = 0.01, toast.autovacuum_vacuum_threshold = 1000,
  toast.autovacuum_vacuum_cost_delay = 0`;

/** Checks only numbers: a check of the payload would read it from TOAST at each claim. */
const messages = `CREATE TABLE ${schema}.messages (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue_name text COLLATE "C" NOT NULL,
  payload jsonb NOT NULL,
  max_attempts integer NOT NULL CHECK (max_attempts BETWEEN 1 AND 100),
  visible_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  attempt_count integer NOT NULL DEFAULT 0 CHECK (attempt_count >= 0),
  claimed_by text,
  enqueued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  last_error text
) WITH (${storage})`;

const deadMessages = `CREATE TABLE ${schema}.dead_messages (
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
)`;

/** Requests over the API with their results, for 24 hours. `body_hash` detects a different request with the same id. */
const tasks = `CREATE TABLE ${schema}.tasks (
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
)`;

/**
 * Each message is in exactly one of the first three indexes, so that a claim reads no row that it may not take: never
 * claimed and never delayed, in order of id; due at a time; on or past its last attempt.
 */
const indexes = [
  `CREATE INDEX messages_fresh ON ${schema}.messages (queue_name, id)
     WHERE attempt_count = 0 AND visible_at <= enqueued_at`,
  `CREATE INDEX messages_due ON ${schema}.messages (queue_name, visible_at)
     WHERE (attempt_count > 0 OR visible_at > enqueued_at) AND attempt_count < max_attempts`,
  `CREATE INDEX messages_last ON ${schema}.messages (queue_name, visible_at) WHERE attempt_count >= max_attempts`,
  `CREATE INDEX dead_messages_order ON ${schema}.dead_messages (queue_name, id)`,
  `CREATE INDEX dead_messages_age ON ${schema}.dead_messages (died_at)`,
  `CREATE INDEX tasks_age ON ${schema}.tasks (created_at)`,
  `CREATE INDEX tasks_open ON ${schema}.tasks (created_at) WHERE state IN ('pending', 'running')`,
];

export const tables: readonly string[] = [meta, queues, messages, deadMessages, tasks, ...indexes];

/** The three disjoint partitions of messages, each with its own partial index; `m` is a row of messages. */
export const partitions = {
  unclaimed: "m.attempt_count = 0 AND m.visible_at <= m.enqueued_at",
  due: "(m.attempt_count > 0 OR m.visible_at > m.enqueued_at) AND m.attempt_count < m.max_attempts",
  last: "m.attempt_count >= m.max_attempts",
} as const;

/**
 * Condition and order for the rows of a queue after an id. With `queue_name = ...` the planner would order by id only.
 * The primary key has that order too, and statistics of other queues could make a scan of all queues look cheaper.
 */
export const inOrderAfter = (row: string, afterId: string): string =>
  `(${row}.queue_name, ${row}.id) > (queue, ${afterId}) AND ${row}.queue_name <= queue`;
export const orderOf = (row: string): string => `${row}.queue_name, ${row}.id`;
