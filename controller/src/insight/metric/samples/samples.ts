import type { Database } from "#kernel/history/database.ts";
import { countValues } from "./count-values.ts";
import { rollUpHours } from "./sample-roll-up.ts";
import { type NewestSample, readNewestSamples } from "./newest-samples.ts";
import { readRecentSamples, type RecentAsked, type RecentSample } from "./recent-samples.ts";
import { type MetricPoint, readPoints, type PointsAsked } from "./sample-points.ts";
import { timeOf } from "#kernel/history/times.ts";

/** What one machine was like at one time. */
export interface StoredSample {
  readonly machineId: string;
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  /** By slot of the catalog of metrics, which begin with 1; a hole is no value. */
  readonly values: ReadonlyMap<number, number>;
}

/** Samples of machines: as they came for a day, by minute for 8 days, by hour for 400 days. */
export interface Samples {
  /** They are in the history for good when it resolves. A machine has one sample for each time: what is there stays. */
  insert(samples: readonly StoredSample[]): Promise<void>;
  /** In no gap are there points. */
  points(asked: PointsAsked): Promise<MetricPoint[]>;
  /** The newest of each machine, of those that have one since then (milliseconds since 1970). */
  newest(machineIds: readonly string[], sinceMs: number): Promise<NewestSample[]>;
  /** As they came, newer than the time that is asked for each machine; of each the first `most` at most. */
  recent(asked: readonly RecentAsked[], slots: readonly number[], most?: number): Promise<RecentSample[]>;
  /** How many values a machine told behind one time and before another (milliseconds since 1970), to the minute, from roll-ups. */
  countValues(machineId: string, afterMs: number, beforeMs: number): Promise<number>;
  /** Rolls up hours that are over and have new samples, until there are none left; resolves to how many it were. */
  rollUp(now: number): Promise<number>;
}

export function createSamples(whenReady: () => Database): Samples {
  return {
    async insert(samples) {
      // In one order for everybody: who adds to the same hours of machines waits, and never for each other.
      const sorted = samples.toSorted((a, b) =>
        a.machineId === b.machineId ? a.timeMs - b.timeMs : a.machineId < b.machineId ? -1 : 1,
      );
      await whenReady().query(statement, [
        sorted.map(({ machineId }) => machineId),
        sorted.map(({ timeMs }) => timeMs),
        sorted.map(({ values }) => arrayText(values)),
      ]);
    },
    points: async (asked) => readPoints(whenReady(), asked),
    newest: async (machineIds, sinceMs) => readNewestSamples(whenReady(), machineIds, sinceMs),
    recent: async (asked, slots, most) => readRecentSamples(whenReady(), asked, slots, most),
    countValues: async (...asked) => countValues(whenReady(), ...asked),
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

/** The samples, and which hours of machines have to be rolled up for them, in one. */
const statement = `
  with told as (
    select machine_id, ${timeOf("time_ms")} as time, vals::float8[] as vals
    from unnest($1::uuid[], $2::bigint[], $3::text[]) as t (machine_id, time_ms, vals)
  ), kept as (
    insert into sample (machine_id, time, vals) select * from told on conflict do nothing returning machine_id, time
  )
  insert into sample_stale (machine_id, hour)
  select distinct machine_id, date_bin('1 hour', time, timestamptz 'epoch') from kept order by 1, 2
  on conflict (machine_id, hour) do update set marks = sample_stale.marks + 1`;

/** An array as PostgreSQL reads it. */
function arrayText(values: ReadonlyMap<number, number>): string {
  const length = Math.max(...values.keys());
  return `{${Array.from({ length }, (_, index) => values.get(index + 1) ?? "NULL").join()}}`;
}
