import type { Database } from "#kernel/history/database.ts";
import {
  type MetricPoint,
  type PointsQuery,
  readPoints,
  readRecentSamples,
  type RecentQuery,
  type RecentSample,
} from "./sample-points.ts";
import { timeOf } from "#kernel/history/sql-timestamps.ts";

/** All metrics of one machine at one time. */
export interface StoredSample {
  readonly machineId: string;
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  /** Values by metric number, from 1; an absent metric has no value. */
  readonly values: ReadonlyMap<number, number>;
}

/** Samples of machines in the history: raw for a day, by minute for 8 days, by hour for 400 days. */
export interface Samples {
  /** Resolves when the samples are durable. A machine has one sample per time; duplicates are ignored. */
  insert(samples: readonly StoredSample[]): Promise<void>;
  /** Aggregated points; gaps in the samples have no points. */
  points(query: PointsQuery): Promise<MetricPoint[]>;
  /** The newest sample of each machine that has one since a time (milliseconds since 1970). */
  newest(machineIds: readonly string[], sinceMs: number): Promise<NewestSample[]>;
  /** Raw samples that are newer than each machine's time, the first `limit` of each. */
  recent(query: readonly RecentQuery[], metricNumbers: readonly number[], limit?: number): Promise<RecentSample[]>;
  /**
   * Number of a machine's values after one time and before another (milliseconds since 1970), to the minute, by
   * roll-ups.
   */
  countValues(machineId: string, afterMs: number, beforeMs: number): Promise<number>;
  /** Rolls up all hours that are over and have new samples; resolves to their number. */
  rollUp(now: number): Promise<number>;
}

export function createSamples(whenReady: () => Database): Samples {
  return {
    async insert(samples) {
      // All inserts use one order of rows, so that concurrent inserts into the same hours wait but do not deadlock.
      const sorted = samples.toSorted((a, b) =>
        a.machineId === b.machineId ? a.timeMs - b.timeMs : a.machineId < b.machineId ? -1 : 1,
      );
      await whenReady().query(statement, [
        sorted.map(({ machineId }) => machineId),
        sorted.map(({ timeMs }) => timeMs),
        sorted.map(({ values }) => arrayText(values)),
      ]);
    },
    points: async (query) => readPoints(whenReady(), query),
    newest: async (machineIds, sinceMs) => readNewestSamples(whenReady(), machineIds, sinceMs),
    recent: async (query, metricNumbers, limit) => readRecentSamples(whenReady(), query, metricNumbers, limit),
    countValues: async (...query) => countValues(whenReady(), ...query),
    async rollUp(now) {
      let hours = 0;
      for (;;) {
        const done = await rollUpHours(whenReady(), now);
        hours += done;
        if (done === 0) return hours;
      }
    },
  };
}

/** Inserts the samples and marks their machine hours for the next roll-up. */
const statement = `
  with reported as (
    select machine_id, ${timeOf("time_ms")} as time, vals::float8[] as vals
    from unnest($1::uuid[], $2::bigint[], $3::text[]) as t (machine_id, time_ms, vals)
  ), inserted as (
    insert into sample (machine_id, time, vals) select * from reported on conflict do nothing returning machine_id, time
  )
  insert into sample_stale (machine_id, hour)
  select distinct machine_id, date_bin('1 hour', time, timestamptz 'epoch') from inserted order by 1, 2
  on conflict (machine_id, hour) do update set marks = sample_stale.marks + 1`;

/** An array literal of PostgreSQL. */
function arrayText(values: ReadonlyMap<number, number>): string {
  const length = Math.max(...values.keys());
  return `{${Array.from({ length }, (_, index) => values.get(index + 1) ?? "NULL").join()}}`;
}

/**
 * Number of values in the complete minutes between two times, milliseconds since 1970, by roll-ups: the raw samples may
 * be deleted.
 */
async function countValues(database: Database, machineId: string, afterMs: number, beforeMs: number): Promise<number> {
  const [row] = await database.query<{ values: string }>(countStatement, [
    machineId,
    Math.trunc(afterMs),
    Math.trunc(beforeMs),
  ]);
  return Number(row?.values ?? 0);
}

const countStatement = `
  select coalesce(sum(n), 0)::text as values from sample_minute, unnest(counts) as n
  where machine_id = $1 and time > ${timeOf("$2::bigint")} and time < ${timeOf("$3::bigint")} - interval '1 minute'`;

/** The newest sample of a machine. */
export interface NewestSample {
  readonly machineId: string;
  /** Values by metric number (common/metric-catalog.ts). */
  readonly values: ReadonlyMap<number, number>;
}

/** Reads the newest sample of each machine that has one since a time (milliseconds since 1970). */
async function readNewestSamples(
  database: Database,
  machineIds: readonly string[],
  sinceMs: number,
): Promise<NewestSample[]> {
  if (machineIds.length === 0) return [];
  const rows = await database.query<{ machine_id: string; vals: (number | null)[] }>(newestStatement, [
    machineIds,
    Math.trunc(sinceMs),
  ]);
  return rows.map(({ machine_id, vals }) => ({
    machineId: machine_id,
    values: new Map(vals.flatMap((value, index) => (value === null ? [] : [[index + 1, value] as const]))),
  }));
}

const newestStatement = `
  select s.machine_id, s.vals from unnest($1::uuid[]) as a (machine_id)
  cross join lateral (
    select machine_id, vals from sample
    where machine_id = a.machine_id and time >= ${timeOf("$2::bigint")} order by time desc limit 1
  ) s`;

/** Number of machine hours in one transaction, about ten thousand samples. */
const hoursAtOnce = 100;

/**
 * Rolls up some machine hours that are over and have new samples into minutes, five minutes and hours; resolves to
 * their number. Each hour is computed again from all its samples, so repeats are harmless and late samples count.
 */
function rollUpHours(database: Database, now: number): Promise<number> {
  return database.session(async (client) => {
    await client.query("begin");
    // A separate statement: samples that were inserted before it locked the mark are visible to later statements.
    const { rows } = await client.query<{ machine_id: string; hour: string }>(takeHours, [now, hoursAtOnce]);
    const hours = [rows.map(({ machine_id }) => machine_id), rows.map(({ hour }) => hour)];
    if (rows.length > 0) {
      await client.query(minutesOfSamples, hours);
      await client.query(fiveMinutesOfMinutes, hours);
      await client.query(hoursOfFiveMinutes, hours);
    }
    await client.query("commit");
    return rows.length;
  });
}

/** Marks that are locked by an insert wait for the next run. */
const takeHours = `
  delete from sample_stale where (machine_id, hour) in (
    select machine_id, hour from sample_stale
    where hour <= ${timeOf("$1::bigint")} - interval '61 minutes'
    order by machine_id, hour limit $2 for update skip locked
  )
  returning machine_id, hour::text`;

/** SQL that gathers rows of (machine_id, time, metric, n, total, least, most) into one row per machine and time. */
const gathered = (table: string, from: string) => `
  insert into ${table} as before (machine_id, time, counts, sums, mins, maxs)
  select machine_id, time, array_agg(n order by metric), array_agg(total order by metric), array_agg(least order by metric),
    array_agg(most order by metric)
  from (${from}) as each group by machine_id, time
  on conflict (machine_id, time) do update
  set counts = excluded.counts, sums = excluded.sums, mins = excluded.mins, maxs = excluded.maxs
  where before.counts is distinct from excluded.counts`;

const minutesOfSamples = gathered(
  "sample_minute",
  `select s.machine_id, date_bin('1 minute', s.time, timestamptz 'epoch') as time, v.metric,
     count(v.value)::smallint as n, sum(v.value) as total, min(v.value) as least, max(v.value) as most
   from unnest($1::uuid[], $2::timestamptz[]) as h (machine_id, hour)
   join sample s on s.machine_id = h.machine_id and s.time >= h.hour and s.time < h.hour + interval '1 hour'
   cross join lateral unnest(s.vals) with ordinality as v (value, metric)
   group by 1, 2, 3`,
);

/** SQL that computes a roll-up from the next finer one. */
const coarser = (table: string, from: string, step: string) =>
  gathered(
    table,
    `select m.machine_id, date_bin('${step}', m.time, timestamptz 'epoch') as time, v.metric,
     coalesce(sum(v.n), 0)::smallint as n, sum(v.total) as total, min(v.least) as least, max(v.most) as most
   from unnest($1::uuid[], $2::timestamptz[]) as h (machine_id, hour)
   join ${from} m on m.machine_id = h.machine_id and m.time >= h.hour and m.time < h.hour + interval '1 hour'
   cross join lateral unnest(m.counts, m.sums, m.mins, m.maxs) with ordinality as v (n, total, least, most, metric)
   group by 1, 2, 3`,
  );

const fiveMinutesOfMinutes = coarser("sample_five_minutes", "sample_minute", "5 minutes");
const hoursOfFiveMinutes = coarser("sample_hour", "sample_five_minutes", "1 hour");
