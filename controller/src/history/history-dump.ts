import type { Database } from "./database.ts";

export interface HistoryRow {
  readonly table: string;
  readonly row: Readonly<Record<string, unknown>>;
}

const tables = ["event", "audit", "task_log"] as const;
const fetchRows = 500;

/**
 * Every row that was there when it began, a page at a time: rows are only ever added, so pages by key miss none of them,
 * and no connection is held while the rows are uploaded.
 */
export async function* dumpHistory(database: Database): AsyncGenerator<HistoryRow> {
  for (const table of tables) {
    let after: HistoryKey = { occurred_at: "-infinity", key: "" };
    for (;;) {
      const rows = await database.query<{ row: HistoryRow["row"]; occurred_at: string; key: string }>(
        `select to_jsonb(t) as row, occurred_at::text, ${keyOf(table)} as key from ${table} t
         where (occurred_at, ${keyOf(table)}) > ($1::timestamptz, $2)
         order by occurred_at, ${keyOf(table)} limit ${fetchRows}`,
        [after.occurred_at, after.key],
      );
      for (const { row } of rows) yield { table, row };
      const last = rows.at(-1);
      if (last === undefined || rows.length < fetchRows) break;
      after = last;
    }
  }
}

interface HistoryKey {
  readonly occurred_at: string;
  readonly key: string;
}

function keyOf(table: (typeof tables)[number]): string {
  return table === "task_log" ? "task_id || '/' || lpad(line::text, 10, '0')" : "id::text";
}

/** Puts rows back; those that are there already stay. A table or column that this version does not know is left out. */
export async function loadHistory(database: Database, rows: readonly HistoryRow[]): Promise<void> {
  for (const table of tables) {
    const those = rows.filter((row) => row.table === table).map(({ row }) => row);
    if (those.length === 0) continue;
    await database.query(
      `insert into ${table} select * from jsonb_populate_recordset(null::${table}, $1::jsonb) on conflict do nothing`,
      [JSON.stringify(those)],
    );
  }
}

/** After the last load: what comes next is numbered behind all that was loaded. */
export async function resumeSequence(database: Database): Promise<void> {
  await database.query(
    `select setval('history_sequence', greatest(nextval('history_sequence'),
       (select coalesce(max(sequence), 1) from event), (select coalesce(max(sequence), 1) from audit)))`,
  );
}
