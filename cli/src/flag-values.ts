import { InvalidArgumentError } from "commander";

/** Parses an integer, at least 0. */
export function integer(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("it is not an integer");
  return Number(text);
}

const secondsOf: ReadonlyMap<string, number> = new Map([
  ["s", 1],
  ["m", 60],
  ["h", 3_600],
  ["d", 86_400],
]);

/** The parser of a duration: `30m`, `24h` or `7d`, or a number of `unit`. Its result is an integer number of `unit`. */
function duration(unit: "s" | "m" | "h" | "d", name: string): (text: string) => number {
  return (text) => {
    const [, number, letter = unit] = /^(\d{1,9})([smhd]?)$/.exec(text) ?? [];
    const total = (Number(number) * (secondsOf.get(letter || unit) ?? 1)) / (secondsOf.get(unit) ?? 1);
    if (number === undefined)
      throw new InvalidArgumentError(`it is not a duration such as 30m, 24h, 7d or 5 (${name})`);
    if (!Number.isInteger(total)) throw new InvalidArgumentError(`it is not a whole number of ${name}`);
    return total;
  };
}

/** Parsers of durations, by the unit of their result and of a number without a unit. */
export const seconds = duration("s", "seconds");
export const minutes = duration("m", "minutes");
export const hours = duration("h", "hours");
export const days = duration("d", "days");

const durationPattern = /^\d{1,9}[smhd]$/;

/** RFC 3339, with any number of fractional digits; the API checks the ranges. */
const timePattern = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;
const datePattern = /^\d{4}-\d\d-\d\d$/;

/** Parses a time in RFC 3339, a date (the start of the day in UTC), or an age such as 30m, to a time in RFC 3339. */
export function timeOrAge(text: string): string {
  return durationPattern.test(text) ? fromNow(-seconds(text)) : timeOf(text, "an age");
}

/** Parses a time in RFC 3339, a date, or a distance from now such as 30d, to a time in RFC 3339. */
export function timeOrDelay(text: string): string {
  return durationPattern.test(text) ? fromNow(seconds(text)) : timeOf(text, "a distance from now");
}

function fromNow(distanceS: number): string {
  return new Date(Date.now() + distanceS * 1_000).toISOString();
}

function timeOf(text: string, distance: string): string {
  const time = datePattern.test(text) ? `${text}T00:00:00Z` : text;
  if (!timePattern.test(time) || Number.isNaN(Date.parse(time)))
    throw new InvalidArgumentError(
      `it is not a time such as 2026-11-29T08:00:00Z, a date such as 2026-11-29 (in UTC), or ${distance} such as 30m, 24h or 7d`,
    );
  return time;
}

/** Parses a factor such as 1.5. */
export function factor(text: string): number {
  if (!/^\d{1,9}(\.\d{1,9})?$/.test(text)) throw new InvalidArgumentError("it is not a number such as 1.5");
  return Number(text);
}

/** Collects name=value of a repeatable flag. */
export function collectPairs(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const equals = text.indexOf("=");
  if (equals < 1) throw new InvalidArgumentError("it must have the format name=value");
  return { ...before, [text.slice(0, equals)]: text.slice(equals + 1) };
}

/** Collects the values of a repeatable flag. */
export function collect(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** Removes undefined members, which are values of absent flags. */
export function omitUndefined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}

/** The first `limit` items; all by default. */
export async function take<T>(items: AsyncIterable<T>, limit = Infinity): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) {
    collected.push(item);
    if (collected.length >= limit) break;
  }
  return collected;
}
