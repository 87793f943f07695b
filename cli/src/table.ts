import { exactDigits } from "@holdfast/sdk/exact-json.ts";
import { styleText } from "node:util";
import { measureOf, measureText, withoutUnit } from "./measures.ts";
import { printable } from "./printable.ts";

/** The width and colors of a table. */
export interface TableStyle {
  /** Width of the terminal; undefined to leave lines uncut. */
  readonly columns: number | undefined;
  readonly color: boolean;
  /** Time in milliseconds since 1970 from which times are visible as ages; undefined to show times. */
  readonly now?: number | undefined;
}

const plain: TableStyle = { columns: undefined, color: false };
const gap = 2;
/** Minimum width of a column of free text. */
const minTextWidth = 16;

type Color = "green" | "yellow" | "red" | "dim" | "bold";

/** Colors of states. */
// biome-ignore format: a table, aligned so that it reads as one
const colors: ReadonlyMap<string, Color> = new Map(
  Object.entries<Color>({
  Running: "green",  completed: "green",  healthy: "green",  ok: "green",
  Pending: "yellow", Provisioning: "yellow", Upgrading: "yellow", pending: "yellow", running: "yellow", degraded: "yellow",
  Error: "red",      failed: "red",       unhealthy: "red",  refused: "red", Unreachable: "red",
  Stopped: "dim",    cancelled: "dim",    "-": "dim",
}),
);

/**
 * Renders a table with columns padded to their widest cell. On a screen, the last columns are left out until the line
 * fits, and columns of free text are cut; ids and names never are.
 */
export function renderTable(
  values: readonly object[],
  allColumns: readonly string[],
  { columns: screen, color, now }: TableStyle = plain,
): string {
  const titles = titlesOf(allColumns);
  const widestOf = (column: string, cells: readonly string[]) =>
    Math.max((titles.get(column) ?? "").length, ...cells.map(({ length }) => length));
  const all = allColumns.map((column) => {
    const cells = values.map((value) => tableCell(value, column, now));
    const width = widestOf(column, cells);
    return {
      column,
      cells,
      width,
      minWidth: cells.some((text) => text.includes(" ")) ? Math.min(width, minTextWidth) : width,
    };
  });
  const visible = screen === undefined ? all : fitting(all, screen);
  const widths =
    screen === undefined ? all.map(({ width }) => width) : fit(visible, screen - gap * (visible.length - 1));
  const line = (row: readonly string[], paint: (text: string, padded: string) => string) => {
    const cells = row.map((text, index) => {
      const width = widths[index] ?? 0;
      const cut = text.length > width ? `${text.slice(0, width - 1)}…` : text;
      return paint(cut, index === row.length - 1 ? cut : cut.padEnd(width));
    });
    return `${cells.join(" ".repeat(gap)).trimEnd()}\n`;
  };
  const paintHead = (_: string, padded: string) => (color ? painted("bold", padded) : padded);
  const paintCell = (text: string, padded: string) => (color ? painted(colors.get(text), padded) : padded);
  const head = visible.map(({ column }) => titles.get(column) ?? "");
  const rows = values.map((_, index) => visible.map(({ cells }) => cells[index] ?? ""));
  return [line(head, paintHead), ...rows.map((row) => line(row, paintCell))].join("");
}

/** Renders one field per line, uncut. */
export function renderObject(
  value: object,
  fields: readonly string[] = Object.keys(value),
  { color }: TableStyle = plain,
): string {
  const names = fields.map(nameOf);
  const width = Math.max(...names.map(({ length }) => length));
  return fields
    .map((field, index) => {
      const text = cell(value, field);
      const name = (names[index] ?? "").padEnd(width);
      return `${color ? painted("bold", name) : name}  ${color ? painted(colors.get(text), text) : text}\n`;
    })
    .join("");
}

interface Column {
  /** Width of the widest cell. */
  readonly width: number;
  /** Minimum width, which is smaller for free text. */
  readonly minWidth: number;
}

/** The first columns that fit the screen at their minimum widths; at least one. */
function fitting<T extends Column>(columns: readonly T[], screen: number): readonly T[] {
  let total = -gap;
  const end = columns.findIndex(({ minWidth }) => (total += minWidth + gap) > screen);
  return end < 0 ? columns : columns.slice(0, Math.max(1, end));
}

/** Narrows the widest columns of free text until all fit. */
function fit(columns: readonly Column[], width: number): number[] {
  const fitted = columns.map(({ width }) => width);
  const total = () => fitted.reduce((sum, width) => sum + width, 0);
  for (let excess = total() - width; excess > 0; excess -= 1) {
    const free = fitted.map((width, index) => (width > (columns[index]?.minWidth ?? 0) ? width : 0));
    const widest = Math.max(...free);
    if (widest === 0) break;
    fitted[free.lastIndexOf(widest)] = widest - 1;
  }
  return fitted;
}

function painted(color: Color | undefined, text: string): string {
  return color === undefined ? text : styleText(color, text, { validateStream: false });
}

/**
 * The name of a column. Connect responses have fields in camelCase, which are printed in snake_case as REST has them.
 * Columns of a query have names of users.
 */
function nameOf(field: string): string {
  return printable(field).replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Titles of columns, without their units, except for columns that only their units distinguish. */
function titlesOf(columns: readonly string[]): ReadonlyMap<string, string> {
  const names = columns.map(nameOf);
  const short = names.map(withoutUnit);
  const isUnique = (name: string) => short.indexOf(name) === short.lastIndexOf(name);
  const titles = names.map((name, index) => (isUnique(short[index] ?? "") ? (short[index] ?? "") : name));
  return new Map(columns.map((column, index) => [column, (titles[index] ?? "").replaceAll("_", " ").toUpperCase()]));
}

const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const ages = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "m"],
  [1, "s"],
] as const;

/** A time as its distance from now, such as "3m ago" or "in 7d". */
function ageText(text: string, now: number): string {
  const distance = Math.round((now - Date.parse(text)) / 1_000);
  const [scale, unit] = ages.find(([seconds]) => Math.abs(distance) >= seconds * (seconds === 1 ? 0 : 2)) ?? ages[3];
  const amount = `${Math.trunc(Math.abs(distance) / scale)}${unit}`;
  return distance >= 0 ? `${amount} ago` : `in ${amount}`;
}

/** The text of a table cell: sizes and durations with a unit, times as ages, and a drain as its state and progress. */
function tableCell(value: object, column: string, now: number | undefined): string {
  const content = contentOf(value, column);
  const measure = typeof content === "number" ? measureOf(nameOf(column)) : undefined;
  if (measure !== undefined) return measureText(content as number, measure);
  if (now !== undefined && typeof content === "string" && timePattern.test(content)) return ageText(content, now);
  const { drain } = value as {
    readonly drain?: { readonly state?: string; readonly machines?: number; left?: number };
  };
  if (column !== "drain" || drain === undefined) return cell(value, column);
  const { state = "none", machines = 0, left: remaining = 0 } = drain;
  if (state === "none") return "-";
  return printable(remaining === 0 ? state : `${state}, ${remaining} of ${machines} left`);
}

/** The member of a column; the name of an object that has none is the first label of its hostname. */
function contentOf(value: object, column: string): unknown {
  const members = value as Readonly<Record<string, unknown>>;
  if (Object.hasOwn(members, column)) return members[column];
  const { hostname } = members;
  return column === "name" && typeof hostname === "string" ? hostname.split(".")[0] : undefined;
}

function cell(value: object, column: string): string {
  const content = contentOf(value, column);
  return printable(column === "health" ? healthText(content) : asText(content));
}

/** Status and reason of health; the checks are in --output json. */
function healthText(content: unknown): string {
  const { status, reason } = (content ?? {}) as { readonly status?: string; readonly reason?: string | null };
  return status === undefined ? asText(content) : reason ? `${status}: ${reason}` : status;
}

/** A value as a short text. */
export function asText(content: unknown): string {
  if (content === null || content === undefined || content === "") return "-";
  if (Array.isArray(content)) return content.length === 0 ? "-" : content.map(asText).join(", ");
  if (typeof content === "number") return numberText(content);
  const digits = exactDigits(content);
  if (digits !== undefined) return digits;
  if (typeof content !== "object") return typeof content === "string" ? content : JSON.stringify(content);
  const entries = Object.entries(content);
  return entries.length === 0 ? "-" : entries.map(([key, value]) => `${nameOf(key)}=${asText(value)}`).join(" ");
}

/** A number: an integer unchanged, from 1,000 on rounded to an integer, otherwise with four significant digits. */
function numberText(value: number): string {
  return String(Number.isInteger(value) || Math.abs(value) >= 1_000 ? Math.round(value) : Number(value.toPrecision(4)));
}
