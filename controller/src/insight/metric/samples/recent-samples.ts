import type { Database } from "#kernel/history/database.ts";
import { millisecondsOf, timeOf } from "#kernel/history/times.ts";

/** Samples of a machine that are newer than a time, milliseconds since 1970. */
export interface RecentAsked {
  readonly machineId: string;
  readonly afterMs: number;
}

export interface RecentSample {
  readonly machineId: string;
  readonly timeMs: number;
  /** By slot, of those that were asked for and have a value. */
  readonly values: ReadonlyMap<number, number>;
}

/** Raw samples of many machines in one statement, oldest first for each machine, of each `most` at most. */
export async function readRecentSamples(
  database: Database,
  asked: readonly RecentAsked[],
  slots: readonly number[],
  most?: number,
): Promise<RecentSample[]> {
  if (asked.length === 0) return [];
  const rows = await database.query<{ machine_id: string; time_ms: string; vals: (number | null)[] }>(statement, [
    asked.map(({ machineId }) => machineId),
    asked.map(({ afterMs }) => Math.trunc(afterMs)),
    slots,
    most ?? null,
  ]);
  return rows.map(({ machine_id, time_ms, vals }) => ({
    machineId: machine_id,
    timeMs: Number(time_ms),
    values: new Map(
      slots.flatMap((slot, index) => {
        const value = vals[index];
        return value === null || value === undefined ? [] : [[slot, value] as const];
      }),
    ),
  }));
}

const statement = `
  select a.machine_id, ${millisecondsOf("s.time")} as time_ms,
    array(select s.vals[slot] from unnest($3::integer[]) with ordinality as wanted (slot, place) order by place) as vals
  from unnest($1::uuid[], $2::bigint[]) as a (machine_id, after_ms)
  cross join lateral (
    select time, vals from sample where machine_id = a.machine_id and time > ${timeOf("a.after_ms")} order by time limit $4::integer
  ) s`;
