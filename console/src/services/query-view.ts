import type { QueryResult } from "@holdfast/sdk/responses.ts";
import { visibleText } from "./logs-view.ts";

type Cell = QueryResult["rows"][number][number];

const maxCellLength = 2_000;

/** The text of a cell: a null differs from an empty text, and a long text is cut. */
export function cellText(cell: Cell): string {
  if (cell === null) return "NULL";
  const text = visibleText(String(cell));
  return text.length > maxCellLength ? `${text.slice(0, maxCellLength)}…` : text;
}

/** The result as CSV (RFC 4180). A text that a spreadsheet would take for a formula begins with an apostrophe. */
export function csvOf({ columns, rows }: Pick<QueryResult, "columns" | "rows">): string {
  return [columns, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n");
}

function csvCell(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell !== "string") return String(cell);
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) || text === "" ? `"${text.replaceAll('"', '""')}"` : text;
}
