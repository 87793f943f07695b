import { renderObject, renderTable, type TableStyle } from "./table.ts";

/** Where a command's result goes. */
export interface Output {
  readonly format: Format;
  /** One object: its fields one a line; all of it in other formats. */
  show(value: object, fields?: readonly string[]): void;
  /** Several objects: a table of these columns; all of them in other formats. */
  list(values: readonly object[], columns: readonly string[]): void;
  /** One of many that come over time: a line of text; a line of JSON or a document of YAML. */
  entry(value: object, text: string): void;
  /** Text for people; goes nowhere in other formats. */
  say(text: string): void;
  /** A result that is a text of its own, in every format. */
  print(text: string): void;
  /** On a terminal, clears the screen for the next frame. */
  clear(): void;
  /** Width of the terminal; undefined where there is none. */
  readonly columns: number | undefined;
}

/** Values of `--output`. */
export const formats = ["table", "json", "yaml"] as const;
export type Format = (typeof formats)[number];

/** A stream to write to, with what a terminal tells about itself. */
export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Colour, and lines cut to the width, only on a terminal; NO_COLOR is heard. */
export async function createOutput(format: Format, screen: Screen, environment: Environment): Promise<Output> {
  const isTerminal = screen.isTTY === true;
  const style: TableStyle = {
    columns: isTerminal ? screen.columns : undefined,
    colour: isTerminal && (environment.NO_COLOR ?? "") === "" && environment.TERM !== "dumb",
  };
  const write = (text: string) => {
    screen.write(text);
  };
  const clear = () => (isTerminal && format === "table" ? write("\u001b[H\u001b[2J") : undefined);
  const common = { format, columns: style.columns, clear, print: (text: string) => write(`${text}\n`) };
  if (format === "table") {
    return {
      ...common,
      show: (value, fields) => write(renderObject(value, fields, style)),
      list: (values, columns) => write(renderTable(values, columns, style)),
      entry: (_value, text) => write(`${text}\n`),
      say: (text) => write(`${text}\n`),
    };
  }
  const encode = format === "json" ? (value: unknown) => `${JSON.stringify(value, null, 2)}\n` : await yamlEncoder();
  return {
    ...common,
    show: (value) => write(encode(value)),
    list: (values) => write(encode(values)),
    entry: (value) => write(format === "json" ? `${JSON.stringify(value)}\n` : `---\n${encode(value)}`),
    say: () => undefined,
  };
}

async function yamlEncoder(): Promise<(value: unknown) => string> {
  const { stringify } = await import("yaml");
  return (value) => stringify(value);
}
