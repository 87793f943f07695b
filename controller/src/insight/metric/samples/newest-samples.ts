import type { Database } from "#kernel/history/database.ts";
import { timeOf } from "#kernel/history/sql-timestamps.ts";

/** The newest sample of a machine. */
export interface NewestSample {
  readonly machineId: string;
  /** Values by metric slot (common/metric-catalog.ts). */
  readonly values: ReadonlyMap<number, number>;
}

/** Reads the newest sample of each machine that has one since a time (milliseconds since 1970). */
export async function readNewestSamples(
  database: Database,
  machineIds: readonly string[],
  sinceMs: number,
): Promise<NewestSample[]> {
  if (machineIds.length === 0) return [];
  const rows = await database.query<{ machine_id: string; vals: (number | null)[] }>(statement, [
    machineIds,
    Math.trunc(sinceMs),
  ]);
  return rows.map(({ machine_id, vals }) => ({
    machineId: machine_id,
    values: new Map(vals.flatMap((value, index) => (value === null ? [] : [[index + 1, value] as const]))),
  }));
}

const statement = `
  select s.machine_id, s.vals from unnest($1::uuid[]) as a (machine_id)
  cross join lateral (
    select machine_id, vals from sample
    where machine_id = a.machine_id and time >= ${timeOf("$2::bigint")} order by time desc limit 1
  ) s`;
