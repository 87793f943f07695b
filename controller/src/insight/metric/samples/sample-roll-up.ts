import type { Database } from "#kernel/history/database.ts";
import { timeOf } from "#kernel/history/times.ts";

/** Hours of machines in one transaction: some ten thousand samples. */
const hoursAtOnce = 100;

/**
 * Makes minutes, five minutes and hours of some hours of machines that are over and have new samples; resolves to how many. They are made
 * anew from all samples of the hour, so that it does not matter how often, and what came late counts.
 */
export function rollUpHours(database: Database, now: number): Promise<number> {
  return database.session(async (client) => {
    await client.query("begin");
    // A statement of its own: what was added until it had the mark is seen by those that follow.
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

/** Marks that somebody adds to right now wait for the next time. */
const takeHours = `
  delete from sample_stale where (machine_id, hour) in (
    select machine_id, hour from sample_stale
    where hour <= ${timeOf("$1::bigint")} - interval '61 minutes'
    order by machine_id, hour limit $2 for update skip locked
  )
  returning machine_id, hour::text`;

/** From rows of (machine_id, time, slot, n, total, least, most) to one row for each machine and time. */
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

/** From roll-ups to coarser ones. */
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
