import { identifier } from "../session.ts";
import { byteText } from "./byte-session.ts";
import type { Value } from "../byte-connection.ts";

/** A column of a table, by its type in information_schema such as `varchar`. */
export interface Column {
  readonly name: string;
  readonly type: string;
}

/** Reads the values of a table as literals from which an INSERT restores the same bytes. */
export interface RowText {
  /** Selected expressions, one a column. */
  readonly expressions: string;
  /** `(1,'a',NULL)`. */
  tuple(row: readonly Value[]): string;
}

interface ColumnText {
  readonly expression: (name: string) => string;
  readonly literal: (bytes: Buffer) => string;
}

const plain = (name: string) => name;
const unquoted = (bytes: Buffer) => bytes.toString("latin1");
const quoted = (bytes: Buffer) => `'${bytes.toString("latin1").replaceAll(/[\\']/g, String.raw`\$&`)}'`;
const hex = (bytes: Buffer) => (bytes.length === 0 ? "''" : `0x${bytes.toString("hex")}`);

const number: ColumnText = { expression: plain, literal: unquoted };
const text: ColumnText = { expression: plain, literal: quoted };
const binary: ColumnText = { expression: plain, literal: hex };
/** FLOAT as DOUBLE, since MySQL prints a FLOAT with six digits only. A zero is quoted to retain its sign. */
const float: ColumnText = { expression: (name) => `CAST(${name} AS DOUBLE)`, literal: quoted };
/** SET as a bitmap: its string cannot distinguish a set of the empty member from the empty set. */
const members: ColumnText = { expression: (name) => `CAST(${name} AS UNSIGNED)`, literal: unquoted };
const json: ColumnText = { expression: plain, literal: (bytes) => `_utf8mb4${quoted(bytes)}` };

const byType: ReadonlyMap<string, ColumnText> = new Map([
  ...["tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year"].map((type) => [type, number] as const),
  ...["float", "double"].map((type) => [type, float] as const),
  ...["enum", "set"].map((type) => [type, members] as const),
  ...["date", "time", "datetime", "timestamp"].map((type) => [type, text] as const),
  ...["char", "varchar", "tinytext", "text", "mediumtext", "longtext"].map((type) => [type, text] as const),
  ["json", json],
]);

/** Columns of every other type, such as BLOB, BIT, VECTOR and spatial types, have bytes. */
export function rowText(columns: readonly Column[]): RowText {
  const texts = columns.map(({ type }) => byType.get(type) ?? binary);
  const literals = texts.map(({ literal }) => literal);
  // A table may have generated columns only.
  const expressions = columns.map(({ name }, index) => texts[index]?.expression(identifier(name))).join(", ") || "1";
  return {
    expressions: byteText(expressions),
    tuple(row) {
      let tuple = "(";
      for (let index = 0; index < literals.length; index += 1) {
        const value = row[index] ?? null;
        if (index > 0) tuple += ",";
        tuple += value === null ? "NULL" : literals[index]?.(value);
      }
      return `${tuple})`;
    },
  };
}
