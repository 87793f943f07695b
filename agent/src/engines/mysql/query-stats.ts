import type { EngineQueryStatistic, QueryOrder, QueryStatsFacet } from "../insight-facets.ts";
import { systemDatabases } from "./layout.ts";
import { type Session, withSession } from "./session.ts";

const withinMs = 10_000;
const picosecondsPerMs = 1e9;

// biome-ignore format: a table, aligned so that it reads as one
const orders: Readonly<Record<QueryOrder, string>> = {
  total_time: "sum_timer_wait",
  calls:      "count_star",
  mean_time:  "avg_timer_wait",
  rows:       "sum_rows_sent + sum_rows_affected",
};

/** Digests outside the databases of the engine itself. The platform's sessions are not instrumented. */
const ofUsers = "digest IS NOT NULL AND (schema_name IS NULL OR schema_name NOT IN (?))";

interface Row {
  readonly query: string;
  readonly calls: string;
  readonly total: string;
  readonly counted: string;
  readonly id: string;
  readonly name: string | null;
}

/** Statistics by statement digest: a digest's statement has placeholders instead of values. */
export const queryStats: QueryStatsFacet = {
  read: (instance, { limit, order }, signal) =>
    withSession(instance, signal, (session) => readStatistics(session, limit, order), { withinMs }),
};

async function readStatistics(session: Session, limit: number, order: QueryOrder) {
  const [all] = await session.rows<{ total: string; since: string | null; now: string }>(
    `SELECT COUNT(*) AS total, MIN(first_seen) AS since, UTC_TIMESTAMP(6) AS now
     FROM performance_schema.events_statements_summary_by_digest WHERE ${ofUsers}`,
    [systemDatabases],
  );
  const rows = await session.rows<Row>(
    `SELECT digest_text AS query, count_star AS calls, sum_timer_wait AS total, digest AS id, schema_name AS name,
       sum_rows_sent + sum_rows_affected AS counted
     FROM performance_schema.events_statements_summary_by_digest WHERE ${ofUsers}
     ORDER BY ${orders[order]} DESC, digest LIMIT ${Math.floor(limit)}`,
    [systemDatabases],
  );
  const collectedAt = timeOf(all?.now ?? "");
  return {
    queries: rows.map(statisticOf),
    totalCount: Number(all?.total ?? 0),
    collectedAt,
    since: all?.since == null ? collectedAt : timeOf(all.since),
  };
}

function statisticOf({ query, calls, total, counted, id, name }: Row): EngineQueryStatistic {
  const totalMs = Number(total) / picosecondsPerMs;
  return {
    query,
    calls: Number(calls),
    totalMs,
    meanMs: Number(calls) === 0 ? 0 : totalMs / Number(calls),
    rows: Number(counted),
    cacheHitRatio: undefined,
    queryId: id,
    database: name ?? "",
  };
}

/** A time of the platform's sessions, whose zone is UTC. */
function timeOf(text: string): Date {
  return new Date(`${text.replace(" ", "T")}Z`);
}
