import { UsageError } from "./exit-code.ts";

/** Where a command's result goes. */
export interface Output {
  /** One object: its fields one a line, or JSON. */
  show(value: object, fields?: readonly string[]): void;
  /** Several objects: a table of these columns, or JSON with everything. */
  list(values: readonly object[], columns: readonly string[]): void;
  /** Text for people; goes nowhere under --output json. */
  say(text: string): void;
  /** A result that is a text of its own, in every format. */
  print(text: string): void;
}

export type Format = "json" | "table";

export function createOutput(format: string, write: (text: string) => void): Output {
  if (format !== "json" && format !== "table") throw new UsageError(`--output is json or table, not ${format}`);
  const json = (value: unknown) => write(`${JSON.stringify(value, null, 2)}\n`);
  return {
    show: (value, fields) => (format === "json" ? json(value) : write(renderObject(value, fields))),
    list: (values, columns) => (format === "json" ? json(values) : write(renderTable(values, columns))),
    say: (text) => void (format === "table" && write(`${text}\n`)),
    print: (text) => write(`${text}\n`),
  };
}

/** Columns padded to their widest cell. */
export function renderTable(values: readonly object[], columns: readonly string[]): string {
  const rows = [
    columns.map((column) => titleOf(column)),
    ...values.map((value) => columns.map((column) => cell(value, column))),
  ];
  const widths = columns.map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)));
  return rows
    .map(
      (row) =>
        `${row
          .map((text, index) => text.padEnd(widths[index] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

/** Columns are named as REST or as Connect spells them. */
function titleOf(column: string): string {
  return column
    .replaceAll(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toUpperCase();
}

function renderObject(value: object, fields: readonly string[] = Object.keys(value)): string {
  const width = Math.max(...fields.map((field) => field.length));
  return fields.map((field) => `${field.padEnd(width)}  ${cell(value, field)}\n`).join("");
}

function cell(value: object, column: string): string {
  const content = (value as Readonly<Record<string, unknown>>)[column];
  return printable(textOf(content));
}

/** One line of text that cannot speak to the terminal. */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex -- these are what a terminal obeys
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " ");
}

function textOf(content: unknown): string {
  if (content === null || content === undefined || content === "") return "-";
  if (Array.isArray(content)) return content.length === 0 ? "-" : content.map(textOf).join(", ");
  if (typeof content !== "object") return typeof content === "string" ? content : JSON.stringify(content);
  const entries = Object.entries(content);
  return entries.length === 0 ? "-" : entries.map(([key, value]) => `${key}=${textOf(value)}`).join(" ");
}
