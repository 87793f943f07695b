import type { ReadOnlyQuery } from "./insight-facets.ts";

/** Value of a result in JSON. */
export type ConsoleValue = string | number | boolean | null;

/** Collects rows as JSON, up to a number of rows and bytes. */
export interface RowCollector {
  readonly rowCount: number;
  /** True once a limit was reached. */
  readonly isFull: boolean;
  /** Adds the row, unless it exceeds a limit. */
  take(row: readonly ConsoleValue[]): void;
  /** Sets the names of the columns, which a result without rows has too. */
  setColumns(names: readonly string[]): void;
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
  let columns: readonly string[] = [];
  let bytes = 2;
  let isFull = false;
  return {
    get rowCount() {
      return texts.length;
    },
    get isFull() {
      return isFull;
    },
    take(row) {
      if (isFull) return;
      const text = JSON.stringify(row);
      bytes += Buffer.byteLength(text) + 1;
      isFull = texts.length === rowsMax || bytes > bytesMax;
      if (!isFull) texts.push(text);
    },
    setColumns(names) {
      columns = names;
    },
    truncate() {
      isFull = true;
    },
    result: () => ({ columns, rows: `[${texts.join(",")}]`, rowCount: texts.length, truncated: isFull }),
  };
}
