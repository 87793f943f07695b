import type { EngineMetrics, MetricsFacet } from "../insight-facets.ts";
import { idsBeforeWraparound } from "./activity-checks.ts";
import { isValidSql } from "./database-list.ts";
import { platformRoles } from "./layout.ts";
import { type Session, withSession } from "./session.ts";

const statementMs = 3_000;

/**
 * Query of all statistics. The epoch changes whenever counters restart: after a reset, after a crash (which
 * drops all statistics and sets the archiver's reset time), and when the set of databases changes.
 */
const metricsSql = `
  WITH platform_roles AS (SELECT oid FROM pg_roles WHERE rolname = ANY ($1::text[])),
  activity AS MATERIALIZED (SELECT * FROM pg_stat_activity),
  sessions AS (
    SELECT state, xact_start, query_start FROM activity
    WHERE backend_type = 'client backend' AND usesysid NOT IN (SELECT oid FROM platform_roles)),
  databases AS (
    SELECT * FROM pg_stat_database WHERE datid <> 0 AND datname <> $2)
  SELECT pg_is_in_recovery() AS in_recovery,
    (SELECT count(*)::float8 FROM sessions) AS connections,
    (SELECT count(*)::float8 FROM sessions
      WHERE state = 'active' AND clock_timestamp() - query_start > interval '1 second') AS slow_queries,
    (SELECT count(*)::float8 FROM pg_locks
      WHERE pid IS NULL OR pid NOT IN (SELECT pid FROM activity WHERE usesysid IN (SELECT oid FROM platform_roles))) AS locks,
    (SELECT coalesce(greatest(extract(epoch FROM clock_timestamp() - least(
        (SELECT min(xact_start) FROM sessions), (SELECT min(prepared) FROM pg_prepared_xacts))), 0), 0)::float8)
      AS oldest_transaction_seconds,
    (SELECT max(greatest(age(datfrozenxid), mxid_age(datminmxid)))::float8 FROM pg_database WHERE ${isValidSql}) AS id_age,
    (SELECT sum(xact_commit + xact_rollback)::float8 FROM databases) AS transactions,
    (SELECT sum(deadlocks)::float8 FROM databases) AS deadlocks,
    (SELECT sum(blks_hit)::float8 FROM databases) AS blocks_hit,
    (SELECT sum(blks_read)::float8 FROM databases) AS blocks_read,
    pg_last_wal_replay_lsn() >= (SELECT latest_end_lsn FROM pg_stat_wal_receiver WHERE status = 'streaming') AS has_all,
    greatest(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0)::float8 AS replay_age_seconds,
    greatest(pg_wal_lsn_diff((SELECT latest_end_lsn FROM pg_stat_wal_receiver WHERE status = 'streaming'),
      pg_last_wal_replay_lsn()), 0)::float8 AS lag_bytes,
    concat_ws(' ', pg_postmaster_start_time(), (SELECT stats_reset FROM pg_stat_archiver),
      (SELECT md5(string_agg(concat_ws(' ', datid, stats_reset), ',' ORDER BY datid)) FROM databases)) AS epoch`;

interface Row {
  readonly in_recovery: boolean;
  readonly connections: number;
  readonly slow_queries: number;
  readonly locks: number;
  readonly oldest_transaction_seconds: number;
  readonly id_age: number;
  readonly transactions: number;
  readonly deadlocks: number;
  readonly blocks_hit: number;
  readonly blocks_read: number;
  readonly epoch: string;
  /** Null on a primary, like the next two. */
  readonly has_all: boolean | null;
  readonly replay_age_seconds: number | null;
  readonly lag_bytes: number | null;
}

const noCommitYet = "The replica has replayed no commit since it started.";
const disconnectedReason = "The replica is not connected to its primary.";
const primaryReason = "The node is the primary, which has no replication lag.";

/** Statistics of users' databases and sessions. */
export const metrics: MetricsFacet = {
  read: (instance, signal) => withSession(instance, signal, readMetrics, { statementMs }),
};

async function readMetrics(session: Session): Promise<EngineMetrics> {
  const [row] = await session.rows<Row>(metricsSql, [platformRoles, platformRoles[0]]);
  if (row === undefined) throw new Error("a SELECT without FROM gave no row");
  const lag = lagOf(row);
  return {
    gauges: {
      ...lag.gauges,
      connections: row.connections,
      pg_connections: row.connections,
      pg_slow_queries: row.slow_queries,
      pg_locks: row.locks,
      pg_oldest_transaction_seconds: row.oldest_transaction_seconds,
      pg_xid_age_percent: (row.id_age / idsBeforeWraparound) * 100,
    },
    counters: { pg_transactions_per_second: row.transactions, pg_deadlocks: row.deadlocks },
    ratios: { pg_cache_hit_rate: { part: row.blocks_hit, total: row.blocks_hit + row.blocks_read } },
    epoch: row.epoch,
    absent: lag.absent,
  };
}

/**
 * A replica that has replayed everything it received has lag 0, even if the primary is idle. The lag of a
 * disconnected replica counts from the last commit that it has.
 */
function lagOf(row: Row): Pick<EngineMetrics, "gauges" | "absent"> {
  if (!row.in_recovery) {
    const names = ["replication_lag_seconds", "pg_replication_lag_seconds", "replication_lag_bytes"];
    return { gauges: {}, absent: Object.fromEntries(names.map((name) => [name, primaryReason])) };
  }
  const seconds = row.has_all === true ? 0 : row.replay_age_seconds;
  return {
    gauges: {
      ...(seconds !== null && { replication_lag_seconds: seconds, pg_replication_lag_seconds: seconds }),
      ...(row.lag_bytes !== null && { replication_lag_bytes: row.lag_bytes }),
    },
    absent: {
      ...(seconds === null && { replication_lag_seconds: noCommitYet, pg_replication_lag_seconds: noCommitYet }),
      ...(row.lag_bytes === null && { replication_lag_bytes: disconnectedReason }),
    },
  };
}
