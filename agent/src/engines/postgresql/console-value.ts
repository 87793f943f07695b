import type { ConsoleValue } from "../console-rows.ts";
import type { Column, TextRow } from "./console-session.ts";

/** OIDs of types whose texts are JSON numbers: int2, int4, oid. */
const integers: ReadonlySet<number> = new Set([21, 23, 26]);
/** OIDs of float4 and float8. */
const floats: ReadonlySet<number> = new Set([700, 701]);
const boolean = 16;
const timestamp = 1114;
const timestamptz = 1184;

/**
 * Converts a value for the result's JSON: numbers that JSON holds exactly and booleans as such, everything else as
 * a string. Times are in the format of RFC 3339, times with a time zone in UTC; infinity and years BC remain in the
 * engine's format.
 */
function consoleValue(type: number, text: string | null): ConsoleValue {
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

/** Converts a row for the result's JSON. */
export function consoleRow(row: TextRow, columns: readonly Column[]): ConsoleValue[] {
  return row.map((value, index) => consoleValue(columns[index]?.type ?? 0, value));
}
