import type { EngineQueryStatistic, QueryOrder, QueryStatsFacet } from "../insight-facets.ts";
import { insightLane } from "./sessions.ts";
import { platform, platformRoles } from "./layout.ts";
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

/** A statement without its literals, or the reason why they cannot be identified. */
export type Redacted = { readonly text: string } | { readonly withheld: string };

/**
 * Tokens of PostgreSQL's lexer, as far as needed here. The order matters: a prefix belongs to its string, and digits
 * within a name are not a number.
 */
const token =
  /(?<space>\s+|--[^\n]*)|(?<comment>\/\*)|(?<escape>[eE]'(?:[^'\\]|\\[\s\S]|'')*')|(?<string>(?:[bBxXnN]|[uU]&)?'(?:[^']|'')*')|(?<name>[uU]&"(?:[^"]|"")*"|"(?:[^"]|"")*"|[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)|(?<parameter>\$\d+)|(?<dollar>\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)|(?<number>(?:\d[\w.]*|\.\d\w*))|(?<other>[\s\S])/uy;

/**
 * Replaces each string by a parameter and each comment by a space. Numbers remain, since types and lengths are numbers
 * too: the caller parses the result and replaces numbers that are values. The meaning of a backslash in a plain string
 * depends on a setting of the session (`standard_conforming_strings`), so such a query is withheld.
 */
export function redactStrings(sql: string): Redacted {
  let text = "";
  let next = nextParameter(sql);
  let at = 0;
  const placeholder = () => {
    const name = `$${next}`;
    next += 1;
    return name;
  };
  while (at < sql.length) {
    token.lastIndex = at;
    const found = token.exec(sql);
    const groups = found?.groups;
    if (found === null || groups === undefined) return { withheld: "it cannot be read" };
    at = token.lastIndex;
    const { space, comment, escape, string, dollar, other } = groups;
    if (space !== undefined) text += space.startsWith("--") ? " " : space;
    else if (comment !== undefined) {
      const end = endOfComment(sql, at);
      if (end === undefined) return { withheld: "a comment in it is not closed" };
      at = end;
      text += " ";
    } else if (escape !== undefined) text += placeholder();
    else if (string !== undefined) {
      if (string.includes("\\")) return { withheld: "a string in it can be read in two ways" };
      text += placeholder();
    } else if (dollar !== undefined) {
      const end = sql.indexOf(dollar, at);
      if (end < 0) return { withheld: "a string in it is not closed" };
      at = end + dollar.length;
      text += placeholder();
    } else {
      // The rest of a string or name without an end.
      if (other === "'" || other === '"') return { withheld: "a string in it is not closed" };
      text += found[0];
    }
  }
  return { text };
}

/** End of a block comment, which may be nested; undefined if it has none. */
function endOfComment(sql: string, from: number): number | undefined {
  const delimiter = /\/\*|\*\//g;
  delimiter.lastIndex = from;
  for (let depth = 1; ; ) {
    const found = delimiter.exec(sql);
    if (found === null) return undefined;
    depth += found[0] === "/*" ? 1 : -1;
    if (depth === 0) return delimiter.lastIndex;
  }
}

/** Number after the highest parameter number in the query. */
function nextParameter(sql: string): number {
  let highest = 0;
  for (const [, digits] of sql.matchAll(/\$(\d{1,6})/g)) highest = Math.max(highest, Number(digits));
  return highest + 1;
}
