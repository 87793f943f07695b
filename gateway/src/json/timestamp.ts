import { create } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";

const pattern = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/** First and last second of the years 1 to 9999 in UTC. A time with an offset can be outside of them. */
const [firstS, lastS] = [-62_135_596_800, 253_402_300_799];

/**
 * Parses an RFC 3339 time, such as `2030-01-31T12:00:00.5+01:30`; undefined if it is invalid or outside of the years 1
 * to 9999.
 */
export function parseTimestamp(text: string): Timestamp | undefined {
  const parts = pattern.exec(text);
  if (parts === null) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const offsetHour = Number(parts[9] ?? 0);
  const offsetMinute = Number(parts[10] ?? 0);
  if (year < 1 || hour > 23 || minute > 59 || second > 59 || offsetHour > 23 || offsetMinute > 59) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  // A day that the month lacks rolls over to the next month.
  if (month < 1 || month > 12 || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  date.setUTCHours(hour, minute, second);
  const offset = (parts[8] === "-" ? -1 : 1) * (offsetHour * 60 + offsetMinute) * 60;
  const seconds = date.getTime() / 1000 - offset;
  if (seconds < firstS || seconds > lastS) return undefined;
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: Number((parts[7] ?? "").padEnd(9, "0")) });
}

/** The fault of an invalid time. The message for a time without an offset, which is ambiguous, asks for one. */
export function timestampFault(text: string): string {
  const hasNoOffset = parseTimestamp(`${text}Z`) !== undefined;
  return hasNoOffset
    ? "has no offset from UTC: add Z or an offset such as +02:00"
    : "must be an RFC 3339 time such as 2030-01-31T12:00:00Z";
}

/** Formats RFC 3339 in UTC with Z, and 0, 3, 6 or 9 digits of fractional seconds. */
export function formatTimestamp(seconds: bigint | number | string, nanos: number): string {
  const dateTime = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
  if (nanos === 0) return `${dateTime}Z`;
  const digits = String(nanos).padStart(9, "0");
  return `${dateTime}.${nanos % 1_000_000 === 0 ? digits.slice(0, 3) : nanos % 1_000 === 0 ? digits.slice(0, 6) : digits}Z`;
}
