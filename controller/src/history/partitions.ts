import type pg from "pg";

/** How long each table's months are kept. */
const tables = [
  { table: "event", keepDays: 90 },
  { table: "audit", keepDays: 400 },
  { table: "task_log", keepDays: 30 },
  { table: "webhook_attempt", keepDays: 30 },
] as const;

const dayMs = 86_400_000;

export interface Month {
  /** "2026_01". */
  readonly suffix: string;
  readonly from: string;
  readonly to: string;
}

/** The month of a time (UTC), or one `offset` months later. */
export function monthOf(time: number, offset = 0): Month {
  const date = new Date(time);
  const first = (months: number) =>
    new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1)).toISOString().slice(0, 10);
  const from = first(offset);
  return { suffix: from.slice(0, 7).replace("-", "_"), from, to: first(offset + 1) };
}

/**
 * Makes the partitions of this month and the next two. A month that the default partition already has rows of, because a
 * clock was wrong, stays there; resolves to these.
 */
export async function makePartitions(client: pg.ClientBase, now: number): Promise<string[]> {
  const skipped: string[] = [];
  for (const { table } of tables) {
    for (const { suffix, from, to } of [monthOf(now), monthOf(now, 1), monthOf(now, 2)]) {
      const name = `${table}_${suffix}`;
      const { rows } = await client.query<{ there: boolean }>("select to_regclass($1) is not null as there", [name]);
      if (rows[0]?.there) continue;
      try {
        await client.query(`create table ${name} partition of ${table} for values from ('${from}') to ('${to}')`);
      } catch (error) {
        if (!isCode(error, "23514") && !isCode(error, "42P07")) throw error;
        if (isCode(error, "23514")) skipped.push(name);
      }
    }
  }
  return skipped;
}

/** Drops the months that are wholly older than their table keeps; resolves to their names. */
export async function dropOldPartitions(client: pg.ClientBase, now: number): Promise<string[]> {
  const dropped: string[] = [];
  for (const { table, keepDays } of tables) {
    const oldest = `${table}_${monthOf(now - keepDays * dayMs).suffix}`;
    const { rows } = await client.query<{ name: string }>(
      "select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass",
      [table],
    );
    for (const { name } of rows) {
      if (!/_\d{4}_\d{2}$/.test(name) || name >= oldest) continue;
      await client.query(`drop table ${name}`);
      dropped.push(name);
    }
  }
  return dropped;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
