import { type SchemaTable, wordsOf } from "../schema-table.ts";

/** Maximum number of tables; tables whose names are in the question are first. */
const tablesMax = 1_000;
const wordsMax = 50;

/**
 * The statement that reads the tables of users' schemas that the role may select from. The question's words are letters
 * and digits only, so that none can end its quotes.
 */
export function schemaSql(question: string): string {
  const words = wordsOf(question).slice(0, wordsMax);
  const named = `(SELECT count(*) FROM unnest(ARRAY[${words.map((word) => `'${word}'`).join(", ")}]) AS w WHERE strpos(lower(c.relname), w) > 0) DESC`;
  const order = [...(words.length === 0 ? [] : [named]), "c.reltuples DESC", "c.oid"];
  return `SELECT n.nspname, c.relname, CASE WHEN c.relkind IN ('v', 'm') THEN 'view' ELSE 'table' END, obj_description(c.oid, 'pg_class'),
    (SELECT json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
       'comment', left(col_description(c.oid, a.attnum), 200)) ORDER BY a.attnum)
     FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
       AND has_column_privilege(c.oid, a.attnum, 'SELECT'))::text,
    (SELECT json_agg(pg_get_constraintdef(k.oid) ORDER BY k.contype DESC, k.conname)
     FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype IN ('p', 'f', 'u'))::text
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition AND c.oid >= 16384
    AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
    AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
  ORDER BY ${order.join(", ")} LIMIT ${tablesMax}`;
}

/** The tables of that statement's rows. */
export function tablesOf(rows: readonly (readonly unknown[])[]): SchemaTable[] {
  return rows.map(([schema, name, kind, comment, columns, keys]) => ({
    name: `${String(schema)}.${String(name)}`,
    kind: kind === "view" ? "view" : "table",
    comment: typeof comment === "string" ? comment.slice(0, 500) : null,
    columns: listOf(columns) as SchemaTable["columns"],
    keys: listOf(keys) as SchemaTable["keys"],
  }));
}

function listOf(json: unknown): readonly unknown[] {
  const list: unknown = typeof json === "string" ? JSON.parse(json) : [];
  return Array.isArray(list) ? list : [];
}
