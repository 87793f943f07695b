import type { Database } from "#kernel/history/database.ts";
import { millisecondsOf, timeOf } from "#kernel/history/sql-timestamps.ts";

/** Selects the samples of a machine that are newer than a time, milliseconds since 1970. */
export interface RecentQuery {
  readonly machineId: string;
  readonly afterMs: number;
}

export interface RecentSample {
  readonly machineId: string;
  readonly timeMs: number;
  /** Values by metric slot, of the requested slots that have one. */
  readonly values: ReadonlyMap<number, number>;
}

/** Reads raw samples of many machines with one statement, oldest first for each machine, at most `limit` of each. */
export async function readRecentSamples(
  database: Database,
  queries: readonly RecentQuery[],
  slots: readonly number[],
  limit?: number,
): Promise<RecentSample[]> {
  if (queries.length === 0) return [];
  const rows = await database.query<{ machine_id: string; time_ms: string; vals: (number | null)[] }>(statement, [
    queries.map(({ machineId }) => machineId),
    queries.map(({ afterMs }) => Math.trunc(afterMs)),
    slots,
    limit ?? null,
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
    array(select s.vals[slot] from unnest($3::integer[]) with ordinality as requested (slot, position) order by position) as vals
  from unnest($1::uuid[], $2::bigint[]) as a (machine_id, after_ms)
  cross join lateral (
    select time, vals from sample where machine_id = a.machine_id and time > ${timeOf("a.after_ms")} order by time limit $4::integer
  ) s`;
