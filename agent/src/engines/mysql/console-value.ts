import type { ConsoleField } from "./console-session.ts";
import type { ConsoleValue } from "../console-rows.ts";

/** Number of the character set `binary`. */
const binary = 63;

/** Types of columns in the protocol (MySQL source, `enum_field_types`). */
const types = {
  tiny: 1,
  short: 2,
  long: 3,
  float: 4,
  double: 5,
  timestamp: 7,
  longlong: 8,
  int24: 9,
  datetime: 12,
  year: 13,
  varchar: 15,
  bit: 16,
  vector: 242,
  tinyBlob: 249,
  mediumBlob: 250,
  longBlob: 251,
  blob: 252,
  varString: 253,
  string: 254,
  geometry: 255,
} as const;

const isOneOf = (...names: (keyof typeof types)[]): ReadonlySet<number> => new Set(names.map((name) => types[name]));

const integers = isOneOf("tiny", "short", "int24", "long", "year");
const floats = isOneOf("float", "double");
const times = isOneOf("datetime", "timestamp");
// biome-ignore format: a list
const bytes = isOneOf("tinyBlob", "mediumBlob", "longBlob", "blob", "varString", "string", "varchar", "bit", "vector", "geometry");

/** Digits of an integer that JSON holds exactly, with a sign. */
const exactLength = 16;

/** True for a BIGINT of few digits: MySQL types a literal such as 1 as BIGINT with the literal's length. */
function isShortInteger(field: ConsoleField | undefined): boolean {
  return field?.columnType === types.longlong && (field.columnLength ?? Infinity) <= exactLength;
}

/**
 * Converts a value for the result's JSON: numbers that JSON holds exactly as such, bytes as hexadecimal digits,
 * everything else as a string. Times are in the format of RFC 3339, values of TIMESTAMP in UTC.
 */
export function consoleValue(field: ConsoleField | undefined, value: Buffer | null): ConsoleValue {
  if (value === null) return null;
  const type = field?.columnType ?? 0;
  if (bytes.has(type) && field?.characterSet === binary) return `0x${value.toString("hex")}`;
  const text = value.toString("utf8");
  if (integers.has(type) || floats.has(type) || isShortInteger(field)) return Number(text);
  if (times.has(type) && /^[0-9]{4}-/.test(text))
    return `${text.replace(" ", "T")}${type === types.timestamp ? "Z" : ""}`;
  return text;
}
