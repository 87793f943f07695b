import type { ReadOnlyQuery } from "../insight-facets.ts";
import type { Column, TextRow } from "./console-session.ts";

/** Collects rows as JSON, up to a number of rows and bytes. */
export interface RowCollector {
  readonly rowCount: number;
  /** True once a limit was reached. */
  readonly isFull: boolean;
  /** Adds the row, unless it exceeds a limit. */
  take(row: TextRow, columns: readonly Column[]): void;
  /** Sets the names of the columns, which a result without rows has too. */
  setColumns(columns: readonly Column[]): void;
  /** Marks the result as truncated. */
  truncate(): void;
  result(): {
    readonly columns: readonly string[];
    readonly rows: string;
    readonly rowCount: number;
    readonly truncated: boolean;
  };
}

export function createRowCollector({ rowsMax, bytesMax }: Pick<ReadOnlyQuery, "rowsMax" | "bytesMax">): RowCollector {
  const texts: string[] = [];
  let names: readonly string[] = [];
  let bytes = 2;
  let isFull = false;
  return {
    get rowCount() {
      return texts.length;
    },
    get isFull() {
      return isFull;
    },
    take(row, columns) {
      if (isFull) return;
      names = columns.map(({ name }) => name);
      const text = JSON.stringify(row.map((value, index) => consoleValue(columns[index]?.type ?? 0, value)));
      bytes += Buffer.byteLength(text) + 1;
      isFull = texts.length === rowsMax || bytes > bytesMax;
      if (!isFull) texts.push(text);
    },
    setColumns(columns) {
      names = columns.map(({ name }) => name);
    },
    truncate() {
      isFull = true;
    },
    result: () => ({ columns: names, rows: `[${texts.join(",")}]`, rowCount: texts.length, truncated: isFull }),
  };
}

/** OIDs of types whose texts are JSON numbers: int2, int4, oid. */
const integers: ReadonlySet<number> = new Set([21, 23, 26]);
/** OIDs of float4 and float8. */
const floats: ReadonlySet<number> = new Set([700, 701]);
const boolean = 16;
const timestamp = 1114;
const timestamptz = 1184;

/**
 * Converts a value for the result's JSON: numbers that JSON holds exactly and booleans as such, everything else as
 * text. Times are in the format of RFC 3339, those with a time zone in UTC; infinity and years BC stay in the engine's
 * text.
 */
function consoleValue(type: number, text: string | null): string | number | boolean | null {
  if (text === null) return null;
  if (integers.has(type)) return Number(text);
  if (floats.has(type)) return Number.isFinite(Number(text)) ? Number(text) : text;
  if (type === boolean) return text === "t";
  if (type === timestamp || type === timestamptz) {
    const found = /^(\d{4,6}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}(?:\.\d+)?)(\+00)?$/.exec(text);
    if (found !== null) return `${found[1]}T${found[2]}${type === timestamptz ? "Z" : ""}`;
  }
  return text;
}
