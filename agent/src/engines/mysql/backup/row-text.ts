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
  /** Text of a row of any size, as of `tuple`, in pieces, so that only the values are in memory. */
  largeTuple(row: readonly Value[]): LargeText;
}

interface LargeText {
  readonly bytes: number;
  readonly pieces: Iterable<Buffer>;
}

interface ColumnText {
  readonly expression: (name: string) => string;
  readonly literal: (bytes: Buffer) => string;
  /** How a large value is written in pieces; absent for types without large values. */
  readonly long?: { readonly prefix: string; readonly isHex?: true };
}

const plain = (name: string) => name;
const unquoted = (bytes: Buffer) => bytes.toString("latin1");
const quoted = (bytes: Buffer) => `'${bytes.toString("latin1").replaceAll(/[\\']/g, String.raw`\$&`)}'`;
const hex = (bytes: Buffer) => (bytes.length === 0 ? "''" : `0x${bytes.toString("hex")}`);

const number: ColumnText = { expression: plain, literal: unquoted };
const text: ColumnText = { expression: plain, literal: quoted, long: { prefix: "" } };
const binary: ColumnText = { expression: plain, literal: hex, long: { prefix: "0x", isHex: true } };
/** FLOAT as DOUBLE, since MySQL prints a FLOAT with six digits only. A zero is quoted to retain its sign. */
const float: ColumnText = { expression: (name) => `CAST(${name} AS DOUBLE)`, literal: quoted };
/** SET as a bitmap: its string cannot distinguish a set of the empty member from the empty set. */
const members: ColumnText = { expression: (name) => `CAST(${name} AS UNSIGNED)`, literal: unquoted };
const json: ColumnText = {
  expression: plain,
  literal: (bytes) => `_utf8mb4${quoted(bytes)}`,
  long: { prefix: "_utf8mb4" },
};

const byType: ReadonlyMap<string, ColumnText> = new Map([
  ...["tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year"].map((type) => [type, number] as const),
  ...["float", "double"].map((type) => [type, float] as const),
  ...["enum", "set"].map((type) => [type, members] as const),
  ...["date", "time", "datetime", "timestamp"].map((type) => [type, text] as const),
  ...["char", "varchar", "tinytext", "text", "mediumtext", "longtext"].map((type) => [type, text] as const),
  ["json", json],
]);

/** Size of a piece of a large value, before it is written as a literal. */
const pieceBytes = 256 << 10;

const latin1 = (string: string): LargeText => ({ bytes: string.length, pieces: [Buffer.from(string, "latin1")] });

function largeText({ literal, long }: ColumnText, value: Value): LargeText {
  if (value === null) return latin1("NULL");
  if (long === undefined || value.length <= pieceBytes) return latin1(literal(value));
  const { prefix, isHex = false } = long;
  const quote = isHex ? "" : "'";
  const inside = isHex ? value.length * 2 : value.length + escapesIn(value);
  function* pieces(bytes: Buffer): Generator<Buffer> {
    yield Buffer.from(prefix + quote, "latin1");
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes);
      yield Buffer.from(isHex ? piece.toString("hex") : quoted(piece).slice(1, -1), "latin1");
    }
    yield Buffer.from(quote, "latin1");
  }
  return { bytes: prefix.length + inside + 2 * quote.length, pieces: pieces(value) };
}

/** Number of bytes that `quoted` adds inside of the quotes. */
function escapesIn(bytes: Buffer): number {
  let count = 0;
  for (const byte of bytes) if (byte === 0x27 || byte === 0x5c) count += 1;
  return count;
}

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
    largeTuple(row) {
      const values = texts.flatMap((column, index) => [
        latin1(index > 0 ? "," : "("),
        largeText(column, row[index] ?? null),
      ]);
      const all = [...values, latin1(values.length > 0 ? ")" : "()")];
      function* pieces(): Generator<Buffer> {
        for (const each of all) yield* each.pieces;
      }
      return { bytes: all.reduce((sum, { bytes }) => sum + bytes, 0), pieces: pieces() };
    },
  };
}

/** Types of columns whose values may be larger than a chunk of rows. */
const largeTypes = /^(medium|long)(blob|text)$|^json$|^vector$|geom|point|linestring|polygon/;

/** True if one row of a table with these columns may be as large as the memory of a plan. */
export const mayHaveLargeRows = (columns: readonly Column[]): boolean =>
  columns.some(({ type }) => largeTypes.test(type));
