import { isDeepStrictEqual } from "node:util";
import type { Outcome } from "@holdfast/testing/servers/tds-outcomes.ts";
import type { InputBatch } from "./input.ts";

/** Babelfish's number for errors of PostgreSQL that have no number of SQL Server. */
const unmapped = new Set([33_557_097, 0]);

/**
 * The first difference from the expected outcomes; undefined if there is none. Errors are compared by number, numbers
 * by the digits that a double has, and rows in any order, unless the batch has an ORDER BY.
 */
export function difference({ sql, expected }: InputBatch, observed: readonly Outcome[]): string | undefined {
  const isOrdered = /\border\s+by\b/i.test(sql);
  for (let at = 0; at < Math.max(expected.length, observed.length); at++) {
    const [left, right] = [expected[at], observed[at]];
    if (left === undefined || right === undefined || left.kind !== right.kind)
      return `expected ${describe(left)}, observed ${describe(right)}`;
    if (left.kind === "error" && right.kind === "error") {
      if (left.number !== right.number && !unmapped.has(left.number))
        return `expected ${describe(left)}, observed ${describe(right)}`;
    } else if (left.kind === "count" && right.kind === "count") {
      if (left.count !== right.count) return `expected ${describe(left)}, observed ${describe(right)}`;
    } else if (left.kind === "rows" && right.kind === "rows") {
      const types = [left, right].map((set) => set.types.map(comparedType));
      if (!isDeepStrictEqual(types[0], types[1])) return `expected types ${types[0]}, observed ${types[1]}`;
      const rows = [left, right].map((set) =>
        set.rows.map((row) => row.map((value, column) => normal(value, types[0]?.[column] ?? ""))),
      );
      const [expectedRows, foundRows] = isOrdered
        ? rows
        : rows.map((list) => list.map((row) => JSON.stringify(row)).toSorted());
      if (!isDeepStrictEqual(expectedRows, foundRows))
        return `expected rows ${JSON.stringify(expectedRows).slice(0, 300)}, observed ${JSON.stringify(foundRows).slice(0, 300)}`;
    }
  }
  return undefined;
}

function comparedType(name: string): string {
  const plain = name
    .replaceAll('"', "")
    .replace(/^sys\./, "")
    .toLowerCase();
  return plain === "decimal" ? "numeric" : plain;
}

function normal(value: string, type: string): string {
  if (value === "<NULL>") return value;
  if (type === "real") return String(Math.fround(Number(value)));
  if (["numeric", "float", "money", "smallmoney"].includes(type)) return String(Number(Number(value).toPrecision(15)));
  if (type === "datetimeoffset") return instant(value);
  if (["datetime", "datetime2", "smalldatetime", "time"].includes(type)) return value.replace(/\.?0*$/, "");
  return value;
}

/** An instant in UTC: tedious has no offset in its values. */
function instant(value: string): string {
  const [, text = "", fraction = "", sign = "+", hours = "0", minutes = "0"] =
    /^(\S+ [\d:]+)(?:\.(\d+))?(?: ([+-])(\d\d):(\d\d))?$/.exec(value) ?? [];
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -1 : 1);
  const time = Date.parse(`${text.replace(" ", "T")}Z`);
  if (Number.isNaN(time)) return value;
  return `${new Date(time - offset * 60_000).toISOString()} ${fraction.replace(/0+$/, "")}`;
}

function describe(outcome: Outcome | undefined): string {
  if (outcome === undefined) return "nothing";
  if (outcome.kind === "rows") return `${outcome.rows.length} rows of ${outcome.types}`;
  if (outcome.kind === "count") return `count ${outcome.count}`;
  return `error ${outcome.number}: ${outcome.message}`;
}
