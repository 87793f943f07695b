import type { Database } from "./database.ts";

export interface HistoryRow {
  readonly table: string;
  readonly row: Readonly<Record<string, unknown>>;
}

/**
 * Each table with the columns of its primary key. Pending webhook deliveries come last: a delivery that ended before
 * that is not repeated after a restore, and a pending one is in the snapshot with its event.
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
 * Every row that existed at the start and was not deleted since, page by page: paging by key misses none of them, and
 * no connection is in use while the rows are uploaded.
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

/** Inserts rows; existing ones stay. Tables and columns that this version does not know are skipped. */
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

/** Call after the last load: advances the sequence beyond all loaded rows. */
export async function resumeSequence(database: Database): Promise<void> {
  await database.query(
    `select setval('history_sequence', greatest(nextval('history_sequence'),
       (select coalesce(max(sequence), 1) from event), (select coalesce(max(sequence), 1) from audit)))`,
  );
}
