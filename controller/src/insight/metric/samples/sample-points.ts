import type { Database } from "#kernel/history/database.ts";
import { millisecondsOf, timeOf } from "#kernel/history/sql-timestamps.ts";

export interface PointsQuery {
  readonly machineIds: readonly string[];
  readonly metricNumbers: readonly number[];
  /** Seconds since 1970, a multiple of the resolution; inclusive. */
  readonly fromS: number;
  /** Exclusive. */
  readonly toS: number;
  readonly resolutionS: number;
}

/** One metric of one machine aggregated over one step of time. */
export interface MetricPoint {
  readonly machineId: string;
  readonly metricNumber: number;
  /** Start of the step, seconds since 1970. */
  readonly timeS: number;
  readonly average: number;
  readonly minimum: number;
  readonly maximum: number;
}

interface Row {
  readonly machine_id: string;
  readonly metric: number;
  readonly time: string;
  readonly average: number;
  readonly minimum: number;
  readonly maximum: number;
}

/** Roll-ups, coarsest first. The first one with at most the requested resolution's step is read. */
const rollUps = [
  { stepS: 3_600, table: "sample_hour" },
  { stepS: 300, table: "sample_five_minutes" },
  { stepS: 60, table: "sample_minute" },
] as const;

/**
 * Reads points, oldest first for each machine and metric: roll-ups up to the first hour that is not rolled up, and raw
 * samples from there on.
 */
export async function readPoints(database: Database, query: PointsQuery): Promise<MetricPoint[]> {
  const { machineIds, metricNumbers, fromS, toS, resolutionS } = query;
  const rolledUp = rollUps.find(({ stepS }) => resolutionS >= stepS)?.table ?? "sample_minute";
  const rows = await database.read<Row>(points(rolledUp), [
    machineIds,
    metricNumbers,
    fromS * 1_000,
    toS * 1_000,
    `${resolutionS} seconds`,
  ]);
  return rows.map((row) => ({
    machineId: row.machine_id,
    metricNumber: row.metric,
    timeS: Number(row.time),
    // The average of equal values can differ from them by rounding.
    average: Math.min(Math.max(row.average, row.minimum), row.maximum),
    minimum: row.minimum,
    maximum: row.maximum,
  }));
}

const points = (rolledUp: string) => `
  with edge as (
    select coalesce(min(hour), 'infinity') as edge from sample_stale where machine_id = any($1::uuid[])
  )
  select machine_id, metric, extract(epoch from time)::bigint::text as time,
    sum(total) / sum(n) as average, min(least) as minimum, max(most) as maximum
  from (
    select r.machine_id, metric, date_bin($5::interval, r.time, timestamptz 'epoch') as time,
      r.sums[metric] as total, r.counts[metric] as n, r.mins[metric] as least, r.maxs[metric] as most
    from ${rolledUp} r, unnest($2::integer[]) as metric
    where r.machine_id = any($1::uuid[]) and r.time >= ${timeOf("$3::bigint")} and r.time < ${timeOf("$4::bigint")}
      and r.time < (select edge from edge) and r.counts[metric] > 0
    union all
    select s.machine_id, metric, date_bin($5::interval, s.time, timestamptz 'epoch'),
      s.vals[metric], 1, s.vals[metric], s.vals[metric]
    from sample s, unnest($2::integer[]) as metric
    where s.machine_id = any($1::uuid[]) and s.time >= ${timeOf("$3::bigint")} and s.time < ${timeOf("$4::bigint")}
      and s.time >= (select edge from edge) and s.vals[metric] is not null
  ) as each
  group by machine_id, metric, each.time order by machine_id, metric, each.time`;

/** Selects the samples of a machine that are newer than a time, milliseconds since 1970. */
export interface RecentQuery {
  readonly machineId: string;
  readonly afterMs: number;
}

export interface RecentSample {
  readonly machineId: string;
  readonly timeMs: number;
  /** Values by metric number, of the requested metrics that have one. */
  readonly values: ReadonlyMap<number, number>;
}

/** Reads raw samples of many machines with one statement, oldest first for each machine, at most `limit` of each. */
export async function readRecentSamples(
  database: Database,
  queries: readonly RecentQuery[],
  metricNumbers: readonly number[],
  limit?: number,
): Promise<RecentSample[]> {
  if (queries.length === 0) return [];
  const rows = await database.query<{ machine_id: string; time_ms: string; vals: (number | null)[] }>(statement, [
    queries.map(({ machineId }) => machineId),
    queries.map(({ afterMs }) => Math.trunc(afterMs)),
    metricNumbers,
    limit ?? null,
  ]);
  return rows.map(({ machine_id, time_ms, vals }) => ({
    machineId: machine_id,
    timeMs: Number(time_ms),
    values: new Map(
      metricNumbers.flatMap((metricNumber, index) => {
        const value = vals[index];
        return value === null || value === undefined ? [] : [[metricNumber, value] as const];
      }),
    ),
  }));
}

const statement = `
  select a.machine_id, ${millisecondsOf("s.time")} as time_ms,
    array(
      select s.vals[metric] from unnest($3::integer[]) with ordinality as requested (metric, position) order by position
    ) as vals
  from unnest($1::uuid[], $2::bigint[]) as a (machine_id, after_ms)
  cross join lateral (
    select time, vals from sample where machine_id = a.machine_id and time > ${timeOf("a.after_ms")} order by time limit $4::integer
  ) s`;
