import type { EngineQueryStatistic, QueryOrder, QueryStatsFacet } from "../insight-facets.ts";
import { insightLane } from "./sessions.ts";
import { platform, platformRoles } from "./layout.ts";
import { redactStrings } from "./literals.ts";
import { type Session, withSession } from "./session.ts";

const statementMs = 10_000;
/** Max length of a query's text in characters; longer queries are excluded. */
const textMax = 4_000;

// biome-ignore format: a table, aligned so that it reads as one
const orders: Readonly<Record<QueryOrder, string>> = {
  total_time: "total_ms",
  calls:      "calls",
  mean_time:  "total_ms / greatest(calls, 1)",
  rows:       "rows",
};

/**
 * Statement that returns a row for each query of a database, of all users except the platform's. The query strings are
 * read only for the selected rows.
 */
const statisticsSql = (order: QueryOrder) => `
  WITH counted AS MATERIALIZED (
    SELECT dbid, queryid, sum(calls)::float8 AS calls, sum(total_exec_time) AS total_ms, sum(rows)::float8 AS rows,
      sum(shared_blks_hit)::float8 AS hit, sum(shared_blks_read)::float8 AS read
    FROM public.pg_stat_statements(false)
    WHERE dbid <> (SELECT oid FROM pg_database WHERE datname = $1)
      AND userid NOT IN (SELECT oid FROM pg_roles WHERE rolname = ANY ($2::text[])) AND queryid IS NOT NULL
    GROUP BY dbid, queryid),
  selected AS (SELECT * FROM counted ORDER BY ${orders[order]} DESC, dbid, queryid LIMIT $3)
  SELECT (SELECT count(*)::float8 FROM counted) AS total, clock_timestamp() AS collected_at,
    (SELECT stats_reset FROM public.pg_stat_statements_info) AS since,
    coalesce((SELECT json_agg(json_build_object(
        'query', CASE WHEN length(text.query) <= ${textMax} THEN text.query END, 'calls', calls, 'totalMs', total_ms,
        'rows', rows, 'hit', hit, 'read', read, 'queryId', queryid::text, 'database', datname)
      ORDER BY ${orders[order]} DESC, dbid, queryid)
    FROM selected
      JOIN pg_database ON pg_database.oid = dbid
      LEFT JOIN (SELECT dbid, queryid, min(query) AS query FROM public.pg_stat_statements(true) GROUP BY dbid, queryid)
        AS text USING (dbid, queryid)), '[]') AS queries`;

interface Row {
  readonly total: number;
  readonly collected_at: Date;
  readonly since: Date;
  readonly queries: readonly {
    readonly query: string | null;
    readonly calls: number;
    readonly totalMs: number;
    readonly rows: number;
    readonly hit: number;
    readonly read: number;
    readonly queryId: string;
    readonly database: string;
  }[];
}

/** Statistics of pg_stat_statements. */
export const queryStats: QueryStatsFacet = {
  read: (instance, { limit, order }, signal) =>
    insightLane(() =>
      withSession(instance, signal, (session) => readStatistics(session, limit, order), { statementMs }),
    ),
};

async function readStatistics(session: Session, limit: number, order: QueryOrder) {
  const [row] = await session.rows<Row>(statisticsSql(order), [platform, platformRoles, limit]);
  if (row === undefined) throw new Error("a SELECT without FROM gave no row");
  return {
    queries: row.queries.map(statisticOf),
    totalCount: row.total,
    collectedAt: row.collected_at,
    since: row.since,
  };
}

function statisticOf({ query, calls, totalMs, rows, hit, read, queryId, database }: Row["queries"][number]) {
  const redacted = query === null ? { withheld: "it is too long" } : redactStrings(query);
  const statistic: EngineQueryStatistic = {
    query: "text" in redacted ? redacted.text : "",
    calls,
    totalMs,
    meanMs: calls === 0 ? 0 : totalMs / calls,
    rows,
    cacheHitRatio: hit + read === 0 ? undefined : hit / (hit + read),
    queryId,
    database,
  };
  return statistic;
}
