import type { QueryResult } from "@holdfast/sdk/responses.ts";
import { visibleText } from "../logs/logs-view.ts";

type Cell = QueryResult["rows"][number][number];

const maxCellLength = 2_000;

/** The text of a cell: a null differs from an empty text, and a long text is cut. */
export function cellText(cell: Cell): string {
  if (cell === null) return "NULL";
  const text = visibleText(String(cell));
  return text.length > maxCellLength ? `${text.slice(0, maxCellLength)}…` : text;
}

/**
 * The result as CSV (RFC 4180). A text that a spreadsheet would take for a formula begins with an apostrophe; numbers,
 * which are texts if they have many digits, are unchanged.
 */
export function csvOf({ columns, rows }: Pick<QueryResult, "columns" | "rows">): string {
  return [columns, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n");
}

function csvCell(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell !== "string") return String(cell);
  const isFormula = /^[=+\-@\t\r]/.test(cell) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(cell);
  const text = isFormula ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) || text === "" ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The result as JSON: one object a row. A repeated column has its number. */
export function jsonOf({ columns, rows }: Pick<QueryResult, "columns" | "rows">): string {
  const names = columns.map((name, index) => (columns.indexOf(name) === index ? name : `${name}_${index + 1}`));
  return JSON.stringify(
    rows.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index] ?? null]))),
    null,
    2,
  );
}

/** Rows or columns of a table that are visible, with a few beside them: the first, and the one after the last. */
export interface TableWindow {
  readonly first: number;
  readonly end: number;
}

/** The part of a table in a scrolled area, along one axis: all lengths are in pixels, the table has `count` rows. */
export function windowOf(
  scrolled: number,
  visible: number,
  { size, count, spare }: { readonly size: number; readonly count: number; readonly spare: number },
): TableWindow {
  const first = Math.min(Math.max(0, Math.floor(scrolled / size) - spare), Math.max(0, count - 1));
  return { first, end: Math.min(count, Math.ceil((scrolled + visible) / size) + spare) };
}

/** Columns by table, from the rows of the engine's schema query: schema, table, column. */
export function schemaOf({ rows }: Pick<QueryResult, "rows">, defaultSchema: string): Record<string, string[]> {
  const tables = new Map<string, string[]>();
  for (const [schema, table, column] of rows) {
    const name = schema === defaultSchema ? String(table) : `${String(schema)}.${String(table)}`;
    const columns = tables.get(name) ?? [];
    columns.push(String(column));
    tables.set(name, columns);
  }
  return Object.fromEntries(tables);
}
