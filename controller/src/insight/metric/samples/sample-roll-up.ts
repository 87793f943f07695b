import type { Database } from "#kernel/history/database.ts";
import { timeOf } from "#kernel/history/sql-timestamps.ts";

/** Number of machine hours in one transaction, about ten thousand samples. */
const hoursAtOnce = 100;

/**
 * Rolls up some machine hours that are over and have new samples into minutes, five minutes and hours; resolves to
 * their number. Each hour is computed again from all its samples, so repeats are harmless and late samples count.
 */
export function rollUpHours(database: Database, now: number): Promise<number> {
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

/** SQL that gathers rows of (machine_id, time, slot, n, total, least, most) into one row per machine and time. */
const gathered = (table: string, from: string) => `
  insert into ${table} as before (machine_id, time, counts, sums, mins, maxs)
  select machine_id, time, array_agg(n order by slot), array_agg(total order by slot), array_agg(least order by slot),
    array_agg(most order by slot)
  from (${from}) as each group by machine_id, time
  on conflict (machine_id, time) do update
  set counts = excluded.counts, sums = excluded.sums, mins = excluded.mins, maxs = excluded.maxs
  where before.counts is distinct from excluded.counts`;

const minutesOfSamples = gathered(
  "sample_minute",
  `select s.machine_id, date_bin('1 minute', s.time, timestamptz 'epoch') as time, v.slot,
     count(v.value)::smallint as n, sum(v.value) as total, min(v.value) as least, max(v.value) as most
   from unnest($1::uuid[], $2::timestamptz[]) as h (machine_id, hour)
   join sample s on s.machine_id = h.machine_id and s.time >= h.hour and s.time < h.hour + interval '1 hour'
   cross join lateral unnest(s.vals) with ordinality as v (value, slot)
   group by 1, 2, 3`,
);

/** SQL that computes a roll-up from the next finer one. */
const coarser = (table: string, from: string, step: string) =>
  gathered(
    table,
    `select m.machine_id, date_bin('${step}', m.time, timestamptz 'epoch') as time, v.slot,
     coalesce(sum(v.n), 0)::smallint as n, sum(v.total) as total, min(v.least) as least, max(v.most) as most
   from unnest($1::uuid[], $2::timestamptz[]) as h (machine_id, hour)
   join ${from} m on m.machine_id = h.machine_id and m.time >= h.hour and m.time < h.hour + interval '1 hour'
   cross join lateral unnest(m.counts, m.sums, m.mins, m.maxs) with ordinality as v (n, total, least, most, slot)
   group by 1, 2, 3`,
  );

const fiveMinutesOfMinutes = coarser("sample_five_minutes", "sample_minute", "5 minutes");
const hoursOfFiveMinutes = coarser("sample_hour", "sample_five_minutes", "1 hour");
