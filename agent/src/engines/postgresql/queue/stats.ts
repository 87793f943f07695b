import type { Instance } from "../../engine-driver.ts";
import { inEachDatabase, listDatabases } from "../database-list.ts";
import { mapRefusals } from "./queue-refused.ts";
import type { QueueSessions } from "./queue-sessions.ts";
import { schema } from "./schema/names.ts";
import { partitions } from "./schema/tables.ts";
import { type Session, withSession } from "../session.ts";

/** Counts of a queue, under the field names of the API. */
interface QueueStats {
  readonly queue_name: string;
  readonly ready_messages: number;
  readonly inflight_messages: number;
  readonly dead_messages: number;
  /** Null without a ready message. */
  readonly oldest_age_seconds: number | null;
  readonly delayed_messages: number;
  /** Oldest transaction that keeps dead rows from being vacuumed, which slows claims; null if there is none. */
  readonly oldest_snapshot: { readonly age_seconds: number; readonly holder: string } | null;
}

/** Exact counts. Throws EngineBusy after the session's statement_timeout. */
export function readStats(session: Session, { queue }: { readonly queue: string }): Promise<QueueStats> {
  return mapRefusals(async () => {
    const [row] = await session.rows<Record<string, string> & { oldest_age_seconds: number | null }>(
      `SELECT * FROM ${schema}.stats($1)`,
      [queue],
    );
    return {
      queue_name: queue,
      ready_messages: Number(row?.["ready_messages"]),
      inflight_messages: Number(row?.["inflight_messages"]),
      dead_messages: Number(row?.["dead_messages"]),
      oldest_age_seconds: row?.oldest_age_seconds ?? null,
      delayed_messages: Number(row?.["delayed_messages"]),
      oldest_snapshot: await oldestSnapshot(session),
    };
  });
}

/** Snapshots of sessions in this database, of walsenders with hot_standby_feedback, and of prepared transactions. */
const snapshots = `
  SELECT extract(epoch FROM clock_timestamp() - since)::double precision AS age_seconds, holder FROM (
    SELECT xact_start AS since, format('user %s, process %s, %s', usename, pid, state) AS holder, age(backend_xmin) AS age
      FROM pg_stat_activity
      WHERE backend_xmin IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'
    UNION ALL SELECT NULL, format('replica %s', application_name), age(backend_xmin)
      FROM pg_stat_replication WHERE backend_xmin IS NOT NULL
    UNION ALL SELECT prepared, format('prepared transaction of user %s', owner), age(transaction)
      FROM pg_prepared_xacts WHERE database = current_database()
  ) AS snapshots ORDER BY age DESC LIMIT 1`;

async function oldestSnapshot(session: Session): Promise<QueueStats["oldest_snapshot"]> {
  const [row] = await session.rows<{ age_seconds: number | null; holder: string }>(snapshots);
  return row === undefined ? null : { age_seconds: Math.max(row.age_seconds ?? 0, 0), holder: row.holder };
}

/** Metrics of a database's queues together. */
interface QueueSample {
  readonly readyMessages: number;
  readonly inflightMessages: number;
  readonly deadMessages: number;
  readonly oldestAgeSeconds: number;
}

const countLimit = 10_000;

/**
 * SQL: number of rows of all live queues together. Exact up to the limit; beyond it the index's last estimate, if that
 * is more.
 */
const bounded = (ofQueue: string, index: string) =>
  `(SELECT CASE WHEN c.n < ${countLimit} THEN c.n ELSE greatest(c.n, i.reltuples::bigint) END
    FROM (SELECT count(*) AS n FROM (
        SELECT FROM live q CROSS JOIN LATERAL (${ofQueue} LIMIT ${countLimit}) AS one LIMIT ${countLimit}
      ) AS l) AS c, pg_class i WHERE i.oid = '${schema}.${index}'::regclass)`;

const from = (slice: string) => `SELECT 1 FROM ${schema}.messages m WHERE m.queue_name = q.name AND ${slice}`;

const sampleStatement = `
  WITH live AS MATERIALIZED (SELECT name FROM ${schema}.queues WHERE deleted_at IS NULL)
  SELECT ${bounded(from(partitions.unclaimed), "messages_fresh")}
      + ${bounded(`${from(partitions.due)} AND m.visible_at <= now()`, "messages_due")} AS ready,
    ${bounded(`${from(partitions.due)} AND m.visible_at > now() AND m.claimed_by IS NOT NULL`, "messages_due")}
      + ${bounded(`${from(partitions.last)} AND m.visible_at > now() AND m.claimed_by IS NOT NULL`, "messages_last")} AS inflight,
    ${bounded(`SELECT 1 FROM ${schema}.dead_messages d WHERE d.queue_name = q.name`, "dead_messages_order")} AS dead,
    coalesce(extract(epoch FROM now() - (SELECT min(least(
      (SELECT m.enqueued_at FROM ${schema}.messages m WHERE m.queue_name = q.name AND ${partitions.unclaimed} ORDER BY m.id LIMIT 1),
      (SELECT m.enqueued_at FROM ${schema}.messages m WHERE m.queue_name = q.name AND ${partitions.due}
        AND m.visible_at <= now() ORDER BY m.visible_at LIMIT 1))) FROM live q)), 0)::double precision AS age`;

/** Metrics of all queues of the database together; counts beyond 10,000 rows are estimates. */
export function sample(session: Session): Promise<QueueSample> {
  return mapRefusals(async () => {
    const [row] = await session.rows<{ ready: string; inflight: string; dead: string; age: number }>(sampleStatement);
    return {
      readyMessages: Number(row?.ready),
      inflightMessages: Number(row?.inflight),
      deadMessages: Number(row?.dead),
      oldestAgeSeconds: Math.max(row?.age ?? 0, 0),
    };
  });
}

/** Metrics of all queues in these databases together; empty without a database. */
export async function sampleQueues(
  sessions: QueueSessions,
  instance: Instance,
  databases: readonly string[],
  signal: AbortSignal,
): Promise<Readonly<Record<string, number>>> {
  if (databases.length === 0) return {};
  const sum = { ready: 0, inflight: 0, dead: 0, oldest: 0 };
  const list = () => sessions.withSlot(() => withSession(instance, signal, listDatabases));
  const found = await inEachDatabase(list, (database) => sessions.use(instance, database, signal, sample), databases);
  for (const figures of found) {
    sum.ready += figures.readyMessages;
    sum.inflight += figures.inflightMessages;
    sum.dead += figures.deadMessages;
    sum.oldest = Math.max(sum.oldest, figures.oldestAgeSeconds);
  }
  return {
    queue_ready_messages: sum.ready,
    queue_inflight_messages: sum.inflight,
    queue_dead_messages: sum.dead,
    queue_oldest_age_seconds: sum.oldest,
  };
}
