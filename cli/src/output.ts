import { exactDigits } from "@holdfast/sdk/exact-json.ts";
import { escapedJson, escapedYaml, hasHidden, printableLines } from "./printable.ts";
import { renderObject, renderTable, type TableStyle } from "./table.ts";

/** Writes the result of a command in the chosen format. */
export interface Output {
  readonly format: Format;
  /** Writes an object: the chosen fields one per line; all of it in json and yaml. */
  show(value: object, fields?: readonly string[]): void;
  /** Writes a list: a table of the chosen columns; all fields in json and yaml. */
  list(values: readonly object[], columns: readonly string[]): void;
  /** Writes one entry of a stream: a line of text, a line of JSON or a YAML document. */
  entry(value: object, text: string): void;
  /** Writes a message for users; nothing in json and yaml. */
  info(text: string): void;
  /** Writes a text in every format. */
  print(text: string): void;
  /** Clears the screen of a terminal. */
  clear(): void;
  /** Width of the terminal in characters; undefined without one. */
  readonly columns: number | undefined;
}

/** Values of `--output`. */
export const formats = ["table", "json", "yaml"] as const;
export type Format = (typeof formats)[number];

/** An output stream, with the properties of a terminal if it is one. */
export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Colors and cut lines only on a terminal. NO_COLOR turns colors off (no-color.org). */
export async function createOutput(format: Format, screen: Screen, environment: Environment): Promise<Output> {
  const isTerminal = screen.isTTY === true;
  const style: TableStyle = {
    columns: isTerminal ? screen.columns : undefined,
    color: isTerminal && (environment.NO_COLOR ?? "") === "" && environment.TERM !== "dumb",
  };
  const write = (text: string) => {
    screen.write(text);
  };
  const clear = () => (isTerminal && format === "table" ? write("\u001b[H\u001b[2J") : undefined);
  const common = { format, columns: style.columns, clear, print: (text: string) => write(`${printableLines(text)}\n`) };
  if (format === "table") {
    return {
      ...common,
      show: (value, fields) => write(renderObject(value, fields, style)),
      list: (values, columns) =>
        write(renderTable(values, columns, isTerminal ? { ...style, now: Date.now() } : style)),
      entry: (_value, text) => common.print(text),
      info: common.print,
    };
  }
  const encode =
    format === "json" ? (value: unknown) => escapedJson(`${JSON.stringify(value, null, 2)}\n`) : await yamlEncoder();
  return {
    ...common,
    show: (value) => write(encode(value)),
    list: (values) => write(encode(values)),
    entry: (value) => write(format === "json" ? escapedJson(`${JSON.stringify(value)}\n`) : `---\n${encode(value)}`),
    info: () => undefined,
  };
}

async function yamlEncoder(): Promise<(value: unknown) => string> {
  const { stringify } = await import("yaml");
  const quoted = { defaultStringType: "QUOTE_DOUBLE", defaultKeyType: "QUOTE_DOUBLE" } as const;
  return (value) => {
    const text = stringify(value, yamlNumber);
    return hasHidden(text) ? escapedYaml(stringify(value, yamlNumber, quoted)) : text;
  };
}

/** A number with more digits than a double holds: an integer with its digits, any other as text. */
function yamlNumber(_: unknown, value: unknown): unknown {
  const digits = exactDigits(value);
  if (digits === undefined) return value;
  return /^-?\d+$/.test(digits) ? BigInt(digits) : digits;
}
