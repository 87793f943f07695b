import { styleText } from "node:util";

/** What the screen of a table can show. */
export interface TableStyle {
  /** Width of the terminal; lines are as long as they are where there is none. */
  readonly columns: number | undefined;
  readonly colour: boolean;
}

const plain: TableStyle = { columns: undefined, colour: false };
const gap = 2;
/** A column is not cut below this. */
const narrowest = 8;

type Colour = "green" | "yellow" | "red" | "dim" | "bold";

/** Words that say at a glance how something is. */
// biome-ignore format: a table, aligned so that it reads as one
const colours: ReadonlyMap<string, Colour> = new Map(
  Object.entries<Colour>({
  Running: "green",  completed: "green",  healthy: "green",  ok: "green",
  Pending: "yellow", Provisioning: "yellow", Upgrading: "yellow", pending: "yellow", running: "yellow", degraded: "yellow",
  Error: "red",      failed: "red",       unhealthy: "red",  refused: "red", Unreachable: "red",
  Stopped: "dim",    cancelled: "dim",    "-": "dim",
}),
);

/** Columns padded to their widest cell; where they are too many for the screen, the widest are cut. */
export function renderTable(
  values: readonly object[],
  columns: readonly string[],
  { columns: screen, colour }: TableStyle = plain,
): string {
  const head = columns.map(titleOf);
  const body = values.map((value) => columns.map((column) => brief(value, column)));
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
  const paintHead = (_: string, padded: string) => (colour ? painted("bold", padded) : padded);
  const paintCell = (text: string, padded: string) => (colour ? painted(colours.get(text), padded) : padded);
  return [line(head, paintHead), ...body.map((row) => line(row, paintCell))].join("");
}

/** A field a line, whatever its length. */
export function renderObject(
  value: object,
  fields: readonly string[] = Object.keys(value),
  { colour }: TableStyle = plain,
): string {
  const names = fields.map(nameOf);
  const width = Math.max(...names.map(({ length }) => length));
  return fields
    .map((field, index) => {
      const text = cell(value, field);
      const name = (names[index] ?? "").padEnd(width);
      return `${colour ? painted("bold", name) : name}  ${colour ? painted(colours.get(text), text) : text}\n`;
    })
    .join("");
}

/** Narrows the widest column until all fit, or none can shrink further. */
function fit(widths: readonly number[], room: number): number[] {
  const fitted = [...widths];
  const total = () => fitted.reduce((sum, width) => sum + width, 0);
  for (let over = total() - room; over > 0; over -= 1) {
    const widest = Math.max(...fitted);
    if (widest <= narrowest) break;
    fitted[fitted.lastIndexOf(widest)] = widest - 1;
  }
  return fitted;
}

function painted(colour: Colour | undefined, text: string): string {
  return colour === undefined ? text : styleText(colour, text, { validateStream: false });
}

/** Fields are spelled as by REST or as by Connect; people read one of them. */
function nameOf(field: string): string {
  return field.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function titleOf(column: string): string {
  return nameOf(column).replaceAll("_", " ").toUpperCase();
}

/** In a table only how it stands. */
function brief(value: object, column: string): string {
  const { drain } = value as {
    readonly drain?: { readonly state?: string; readonly machines?: number; left?: number };
  };
  if (column !== "drain" || drain === undefined) return cell(value, column);
  const { state = "none", machines = 0, left = 0 } = drain;
  if (state === "none") return "-";
  return printable(left === 0 ? state : `${state}, ${left} of ${machines} left`);
}

function cell(value: object, column: string): string {
  const content = (value as Readonly<Record<string, unknown>>)[column];
  return printable(column === "health" ? healthText(content) : asText(content));
}

/** Not each check, which --output json has, but how it is and why. */
function healthText(content: unknown): string {
  const { status, reason } = (content ?? {}) as { readonly status?: string; readonly reason?: string | null };
  return status === undefined ? asText(content) : reason ? `${status}: ${reason}` : status;
}

/** One line of text that cannot speak to the terminal. */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex -- these are what a terminal obeys
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " ");
}

/** A value in a few words. */
export function asText(content: unknown): string {
  if (content === null || content === undefined || content === "") return "-";
  if (Array.isArray(content)) return content.length === 0 ? "-" : content.map(asText).join(", ");
  if (typeof content !== "object") return typeof content === "string" ? content : JSON.stringify(content);
  const entries = Object.entries(content);
  return entries.length === 0 ? "-" : entries.map(([key, value]) => `${nameOf(key)}=${asText(value)}`).join(" ");
}
