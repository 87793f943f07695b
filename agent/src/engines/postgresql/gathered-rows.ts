import type { ReadOnlyQuery } from "../insight-facets.ts";
import type { Column, TextRow } from "./console-session.ts";
import { consoleValue } from "./console-value.ts";

/** Rows as JSON, up to so many and so many bytes. */
export interface Gathering {
  readonly rowCount: number;
  /** No more is wanted. */
  readonly isFull: boolean;
  /** Takes the row, unless it is one too many. */
  take(row: TextRow, columns: readonly Column[]): void;
  name(columns: readonly Column[]): void;
  /** There were more. */
  cut(): void;
  answer(): {
    readonly columns: readonly string[];
    readonly rows: string;
    readonly rowCount: number;
    readonly truncated: boolean;
  };
}

export function createGathering({ rowsMax, bytesMax }: Pick<ReadOnlyQuery, "rowsMax" | "bytesMax">): Gathering {
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
    name(columns) {
      names = columns.map(({ name }) => name);
    },
    cut() {
      isFull = true;
    },
    answer: () => ({ columns: names, rows: `[${texts.join(",")}]`, rowCount: texts.length, truncated: isFull }),
  };
}
