import type { Database } from "./database.ts";

export interface HistoryRow {
  readonly table: string;
  readonly row: Readonly<Record<string, unknown>>;
}

/** A table with the columns of its primary key, in order. */
interface DumpedTable {
  readonly name: string;
  readonly key: readonly { readonly column: string; readonly type: string }[];
  /** Other tables that its foreign keys reference. */
  readonly references: readonly string[];
}

/** Tables that a dump omits: measurements, which are too large for a snapshot, and the record of applied migrations. */
const notDumped: readonly string[] = [
  "sample",
  "sample_minute",
  "sample_five_minutes",
  "sample_hour",
  "sample_stale",
  "schema_version",
];

const fetchRows = 500;

/** Every table of the database except `notDumped`, including tables of later migrations. */
async function dumpedTables(database: Database): Promise<readonly DumpedTable[]> {
  const found = await database.query<DumpedTable>(
    `select c.relname as name,
       (select coalesce(jsonb_agg(jsonb_build_object('column', quote_ident(a.attname),
                 'type', format_type(a.atttypid, a.atttypmod)) order by k.place), '[]')
        from pg_index i, unnest(i.indkey) with ordinality k (attnum, place)
        join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
        where i.indrelid = c.oid and i.indisprimary) as key,
       (select coalesce(jsonb_agg(distinct r.relname), '[]') from pg_constraint f join pg_class r on r.oid = f.confrelid
        where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> c.oid) as references
     from pg_class c
     where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = current_schema()::regnamespace
     order by c.relname`,
  );
  const tables = found.filter(({ name }) => !notDumped.includes(name));
  const keyless = tables.find(({ key }) => key.length === 0);
  if (keyless !== undefined) throw new Error(`table ${keyless.name} of the history has no primary key`);
  return inLoadOrder(tables);
}

/**
 * Orders tables so that each follows the tables that it references. Pending webhook deliveries come last: a delivery
 * that ended before that is not repeated after a restore, and a pending one is in the snapshot with its event.
 */
export function inLoadOrder<T extends Pick<DumpedTable, "name" | "references">>(tables: readonly T[]): readonly T[] {
  const isLast = ({ name }: T) => name === "webhook_delivery";
  let waiting = [...tables.filter((table) => !isLast(table)), ...tables.filter(isLast)];
  const ordered: T[] = [];
  while (waiting.length > 0) {
    const names = new Set(waiting.map(({ name }) => name));
    const next = waiting.find(({ references }) => !references.some((other) => names.has(other)));
    if (next === undefined) throw new Error(`tables of the history reference each other: ${[...names].join(", ")}`);
    ordered.push(next);
    waiting = waiting.filter((table) => table !== next);
  }
  return ordered;
}

/**
 * Yields every row that existed at the start and was not deleted since. Rows are read in pages by primary key, which
 * misses none of them, and no connection is in use while the rows are uploaded.
 */
export async function* dumpHistory(database: Database): AsyncGenerator<HistoryRow> {
  for (const { name: table, key } of await dumpedTables(database)) {
    const columns = key.map(({ column }) => column).join();
    const after = key.map(({ type }, index) => `$${index + 1}::${type}`).join();
    for (let last: readonly string[] | undefined; ; ) {
      const where = last === undefined ? "" : `where (${columns}) > (${after})`;
      const rows = await database.query<{ row: HistoryRow["row"]; key: string[] }>(
        `select to_jsonb(t) as row, array[${key.map(({ column }) => `${column}::text`).join()}] as key
         from ${table} t ${where} order by ${columns} limit ${fetchRows}`,
        last,
      );
      for (const { row } of rows) yield { table, row };
      last = rows.at(-1)?.key;
      if (last === undefined || rows.length < fetchRows) break;
    }
  }
}

/** Inserts rows; existing rows remain unchanged. Tables and columns that this version does not have are skipped. */
export async function loadHistory(database: Database, rows: readonly HistoryRow[]): Promise<void> {
  const byTable = Map.groupBy(rows, ({ table }) => table);
  for (const { name: table } of await dumpedTables(database)) {
    const tableRows = byTable.get(table);
    if (tableRows === undefined) continue;
    await database.query(
      `insert into ${table} overriding system value
       select * from jsonb_populate_recordset(null::${table}, $1::jsonb) on conflict do nothing`,
      [JSON.stringify(tableRows.map(({ row }) => row))],
    );
  }
}

/** Advances all sequences beyond the loaded rows. Call it after the last load. */
export async function resumeSequences(database: Database): Promise<void> {
  await database.query(
    `select setval('history_sequence', greatest(nextval('history_sequence'),
       (select coalesce(max(sequence), 1) from event), (select coalesce(max(sequence), 1) from audit)))`,
  );
  const identities = await database.query<{ table: string; column: string }>(
    `select c.relname as table, a.attname as column from pg_attribute a join pg_class c on c.oid = a.attrelid
     where a.attidentity <> '' and c.relnamespace = current_schema()::regnamespace`,
  );
  for (const { table, column } of identities)
    await database.query(
      `select setval(pg_get_serial_sequence('${table}', '${column}'), (select coalesce(max(${column}), 0) + 1 from ${table}), false)`,
    );
}
