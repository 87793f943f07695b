import { type SchemaTable, wordsOf } from "../schema-table.ts";

/** Maximum number of tables; tables whose names are in the question are first. */
const tablesMax = 1_000;
const wordsMax = 50;

/**
 * The statement that reads the tables that the account may select from. The question's words are letters and digits
 * only, so that none can end its quotes.
 */
export function schemaSql(question: string): string {
  const words = wordsOf(question).slice(0, wordsMax);
  const named = words.map((word) => `(LOCATE('${word}', LOWER(t.table_name)) > 0)`).join(" + ");
  const order = [...(named === "" ? [] : [`${named} DESC`]), "t.table_rows DESC", "t.table_schema", "t.table_name"];
  return `SELECT t.table_schema, t.table_name, IF(t.table_type = 'VIEW', 'view', 'table'), NULLIF(t.table_comment, ''),
    c.columns, k.definitions
  FROM information_schema.tables AS t
  LEFT JOIN (
    SELECT table_schema AS place, table_name AS name, JSON_ARRAYAGG(JSON_OBJECT('name', column_name,
      'type', column_type, 'comment', NULLIF(LEFT(column_comment, 200), ''), 'position', ordinal_position)) AS columns
    FROM information_schema.columns GROUP BY table_schema, table_name
  ) AS c ON c.place = t.table_schema AND c.name = t.table_name
  LEFT JOIN (
    SELECT place, name, JSON_ARRAYAGG(definition) AS definitions FROM (
      SELECT u.table_schema AS place, u.table_name AS name, CONCAT(MAX(r.constraint_type), ' (',
        GROUP_CONCAT(u.column_name ORDER BY u.ordinal_position SEPARATOR ', '), ')',
        COALESCE(CONCAT(' REFERENCES ', MAX(u.referenced_table_name), ' (',
          GROUP_CONCAT(u.referenced_column_name ORDER BY u.ordinal_position SEPARATOR ', '), ')'), '')) AS definition
      FROM information_schema.key_column_usage AS u JOIN information_schema.table_constraints AS r
        ON r.constraint_schema = u.constraint_schema AND r.constraint_name = u.constraint_name
          AND r.table_name = u.table_name
      GROUP BY u.table_schema, u.table_name, u.constraint_name) AS one
    GROUP BY place, name
  ) AS k ON k.place = t.table_schema AND k.name = t.table_name
  WHERE t.table_schema NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys', 'holdfast')
  ORDER BY ${order.join(", ")} LIMIT ${tablesMax}`;
}

interface ListedColumn {
  readonly name: string;
  readonly type: string;
  readonly comment: string | null;
  readonly position: number;
}

/** The tables of that statement's rows. */
export function tablesOf(rows: readonly (readonly unknown[])[]): SchemaTable[] {
  return rows.map(([schema, name, kind, comment, columns, keys]) => ({
    name: `${String(schema)}.${String(name)}`,
    kind: kind === "view" ? "view" : "table",
    comment: typeof comment === "string" && comment !== "VIEW" ? comment.slice(0, 500) : null,
    columns: (listOf(columns) as ListedColumn[])
      .toSorted((a, b) => a.position - b.position)
      .map(({ name: column, type, comment: text }) => ({ name: column, type, comment: text })),
    keys: (listOf(keys) as string[]).toSorted(),
  }));
}

function listOf(json: unknown): readonly unknown[] {
  const list: unknown = typeof json === "string" ? JSON.parse(json) : [];
  return Array.isArray(list) ? list : [];
}
