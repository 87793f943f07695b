import { styleText } from "node:util";

/** The width and colors of a table. */
export interface TableStyle {
  /** Width of the terminal; undefined to leave lines uncut. */
  readonly columns: number | undefined;
  readonly color: boolean;
}

const plain: TableStyle = { columns: undefined, color: false };
const gap = 2;
/** Minimum width of a cut column. */
const narrowest = 8;

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
 * Renders a table with columns padded to their widest cell; the widest columns are cut until the line fits the screen.
 */
export function renderTable(
  values: readonly object[],
  columns: readonly string[],
  { columns: screen, color }: TableStyle = plain,
): string {
  const head = columns.map(titleOf);
  const body = values.map((value) => columns.map((column) => tableCell(value, column)));
  const widest = columns.map((_, index) => Math.max(...[head, ...body].map((row) => row[index]?.length ?? 0)));
  const widths = screen === undefined ? widest : fit(widest, screen - gap * (columns.length - 1));
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
  return [line(head, paintHead), ...body.map((row) => line(row, paintCell))].join("");
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

/** Narrows the widest column until all fit, or all have the minimum width. */
function fit(widths: readonly number[], width: number): number[] {
  const fitted = [...widths];
  const total = () => fitted.reduce((sum, width) => sum + width, 0);
  for (let excess = total() - width; excess > 0; excess -= 1) {
    const widest = Math.max(...fitted);
    if (widest <= narrowest) break;
    fitted[fitted.lastIndexOf(widest)] = widest - 1;
  }
  return fitted;
}

function painted(color: Color | undefined, text: string): string {
  return color === undefined ? text : styleText(color, text, { validateStream: false });
}

/** Fields of Connect responses are in camelCase; they are shown in snake_case as those of REST. */
function nameOf(field: string): string {
  return field.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function titleOf(column: string): string {
  return nameOf(column).replaceAll("_", " ").toUpperCase();
}

/** The text of a table cell; a drain is shown as its state and progress. */
function tableCell(value: object, column: string): string {
  const { drain } = value as {
    readonly drain?: { readonly state?: string; readonly machines?: number; left?: number };
  };
  if (column !== "drain" || drain === undefined) return cell(value, column);
  const { state = "none", machines = 0, left: remaining = 0 } = drain;
  if (state === "none") return "-";
  return printable(remaining === 0 ? state : `${state}, ${remaining} of ${machines} left`);
}

function cell(value: object, column: string): string {
  const content = Object.hasOwn(value, column) ? (value as Readonly<Record<string, unknown>>)[column] : undefined;
  return printable(column === "health" ? healthText(content) : asText(content));
}

/** Status and reason of health; the checks are in --output json. */
function healthText(content: unknown): string {
  const { status, reason } = (content ?? {}) as { readonly status?: string; readonly reason?: string | null };
  return status === undefined ? asText(content) : reason ? `${status}: ${reason}` : status;
}

/** Replaces control characters, so that a value cannot control the terminal. */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters of terminals
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " ");
}

/** A value as a short text. */
export function asText(content: unknown): string {
  if (content === null || content === undefined || content === "") return "-";
  if (Array.isArray(content)) return content.length === 0 ? "-" : content.map(asText).join(", ");
  if (typeof content !== "object") return typeof content === "string" ? content : JSON.stringify(content);
  const entries = Object.entries(content);
  return entries.length === 0 ? "-" : entries.map(([key, value]) => `${nameOf(key)}=${asText(value)}`).join(" ");
}
