import type { Database } from "./database.ts";

export interface HistoryRow {
  readonly table: string;
  readonly row: Readonly<Record<string, unknown>>;
}

/**
 * Each table with the columns of its primary key. Pending deliveries to webhook endpoints come last: a delivery that
 * ended by then need not be repeated, and a pending one is in the snapshot with its event.
 */
const tables = {
  event: ["id", "occurred_at"],
  audit: ["id", "occurred_at"],
  task_log: ["task_id", "line", "occurred_at"],
  inference_usage: ["hour", "organization_id", "key_id", "model", "provider"],
  inference_batch: ["process_id", "batch"],
  deployment: ["id"],
  webhook_attempt: ["id", "occurred_at"],
  webhook_delivery: ["id"],
} as const;

type Table = keyof typeof tables;
const names = Object.keys(tables) as Table[];
const fetchRows = 500;

/**
 * Every row that existed at the beginning and was not deleted since, a page at a time: pages by key miss none of them,
 * and no connection is held while the rows are uploaded.
 */
export async function* dumpHistory(database: Database): AsyncGenerator<HistoryRow> {
  for (const table of names) {
    const key = tables[table];
    const after = key.map((column, index) => `$${index + 1}::${types[column]}`);
    for (let last: readonly string[] | undefined; ; ) {
      const where = last === undefined ? "" : `where (${key.join()}) > (${after.join()})`;
      const rows = await database.query<{ row: HistoryRow["row"]; key: string[] }>(
        `select to_jsonb(t) as row, array[${key.map((column) => `${column}::text`).join()}] as key
         from ${table} t ${where} order by ${key.join()} limit ${fetchRows}`,
        last,
      );
      for (const { row } of rows) yield { table, row };
      last = rows.at(-1)?.key;
      if (last === undefined || rows.length < fetchRows) break;
    }
  }
}

const types = {
  id: "uuid",
  occurred_at: "timestamptz",
  task_id: "text",
  line: "integer",
  hour: "timestamptz",
  organization_id: "text",
  key_id: "text",
  model: "text",
  provider: "text",
  process_id: "text",
  batch: "bigint",
} as const;

/** Inserts rows again; existing ones stay. A table or column that this version does not know is left out. */
export async function loadHistory(database: Database, rows: readonly HistoryRow[]): Promise<void> {
  for (const table of names) {
    const those = rows.filter((row) => row.table === table).map(({ row }) => row);
    if (those.length === 0) continue;
    await database.query(
      `insert into ${table} select * from jsonb_populate_recordset(null::${table}, $1::jsonb) on conflict do nothing`,
      [JSON.stringify(those)],
    );
  }
}

/** After the last load: later rows are numbered behind all that were loaded. */
export async function resumeSequence(database: Database): Promise<void> {
  await database.query(
    `select setval('history_sequence', greatest(nextval('history_sequence'),
       (select coalesce(max(sequence), 1) from event), (select coalesce(max(sequence), 1) from audit)))`,
  );
}
