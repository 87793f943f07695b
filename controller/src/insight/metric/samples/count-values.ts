import type { Database } from "#kernel/history/database.ts";
import { timeOf } from "#kernel/history/times.ts";

/**
 * Number of values in the complete minutes between two times, milliseconds since 1970, by roll-ups: the raw samples may
 * be deleted.
 */
export async function countValues(
  database: Database,
  machineId: string,
  afterMs: number,
  beforeMs: number,
): Promise<number> {
  const [row] = await database.query<{ values: string }>(statement, [
    machineId,
    Math.trunc(afterMs),
    Math.trunc(beforeMs),
  ]);
  return Number(row?.values ?? 0);
}

const statement = `
  select coalesce(sum(n), 0)::text as values from sample_minute, unnest(counts) as n
  where machine_id = $1 and time > ${timeOf("$2::bigint")} and time < ${timeOf("$3::bigint")} - interval '1 minute'`;
