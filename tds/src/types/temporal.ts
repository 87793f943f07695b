/** Dates and times as numbers: days since 0001-01-01, and time of day in units of 100 ns. */
export interface Moment {
  readonly days: number;
  readonly ticks: bigint;
  /** Minutes east of UTC. */
  readonly offsetMinutes: number;
}

const ticksPerSecond = 10_000_000n;
const ticksPerDay = 86_400n * ticksPerSecond;
const dayMs = 86_400_000;
/** 0001-01-01 in days since 1970-01-01. */
const firstDay = -719_162;
export const daysTo1900 = 693_595;

const datePattern = /^(\d{4,})-(\d{2})-(\d{2})/;
const timePattern = /(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,7}))?)?/;
const offsetPattern = /([+-])(\d{2})(?::?(\d{2}))?$/;
/** Pattern of PostgreSQL's output for the composite type `datetimeoffset`: UTC timestamp and minutes. */
const compositePattern = /^\("?([^",]+)"?,(-?\d+)\)$/;

/** Reads PostgreSQL's output of date, time, timestamp and timestamptz, in ISO style. */
export function parseMoment(text: string): Moment | undefined {
  const composite = compositePattern.exec(text);
  if (composite?.[1] !== undefined) {
    const utc = parseMoment(composite[1]);
    return utc && shift({ ...utc, offsetMinutes: Number(composite[2]) });
  }
  const date = datePattern.exec(text);
  const clock = timePattern.exec(date === null ? text : text.slice(date[0].length));
  if (date === null && clock === null) return undefined;
  const days =
    date === null ? daysTo1900 : Date.UTC(2000, 0, 1) / dayMs - firstDay + daysSince2000(date.slice(1, 4).map(Number));
  const offset = date !== null && clock !== null ? offsetPattern.exec(text.slice(date[0].length)) : null;
  const minutes = offset === null ? 0 : Number(offset[2]) * 60 + Number(offset[3] ?? 0);
  return { days, ticks: clock === null ? 0n : ticksOf(clock), offsetMinutes: offset?.[1] === "-" ? -minutes : minutes };
}

/** Days since 2000-01-01. `Date.UTC` maps years below 100 to 1900 and later, so the year is set separately. */
function daysSince2000([year = 1, month = 1, day = 1]: readonly number[]): number {
  const date = new Date(Date.UTC(2000, month - 1, day));
  date.setUTCFullYear(year, month - 1, day);
  return Math.round((date.getTime() - Date.UTC(2000, 0, 1)) / dayMs);
}

function ticksOf([, hours, minutes, seconds = "0", fraction = ""]: readonly (string | undefined)[]): bigint {
  const totalSeconds = Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds);
  return BigInt(totalSeconds) * ticksPerSecond + BigInt(fraction.padEnd(7, "0"));
}

/** Adds the offset to a date and time, with a carry to the day. */
function shift({ days, ticks, offsetMinutes }: Moment): Moment {
  const total = BigInt(days) * ticksPerDay + ticks + BigInt(offsetMinutes) * 60n * ticksPerSecond;
  return { days: Number(total / ticksPerDay), ticks: total % ticksPerDay, offsetMinutes };
}

/** Converts a local date and time to UTC. */
export function toUtc({ days, ticks, offsetMinutes }: Moment): Moment {
  return { ...shift({ days, ticks, offsetMinutes: -offsetMinutes }), offsetMinutes };
}

/** Converts a date and time in UTC to local time, by its offset. */
export function toLocal(moment: Moment): Moment {
  return shift(moment);
}

export function dateText(days: number): string {
  const date = new Date((days + firstDay) * dayMs);
  const year = String(date.getUTCFullYear()).padStart(4, "0");
  return `${year}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`;
}

export function timeText(ticks: bigint): string {
  const seconds = Number(ticks / ticksPerSecond);
  const fraction = String(ticks % ticksPerSecond)
    .padStart(7, "0")
    .replace(/0+$/, "");
  const clock = `${two(Math.floor(seconds / 3_600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return fraction === "" ? clock : `${clock}.${fraction}`;
}

export function offsetText(minutes: number): string {
  const absolute = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${two(Math.floor(absolute / 60))}:${two(absolute % 60)}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** Rounds a date and time to 10^-scale seconds, with a carry to the next day. */
export function roundMoment(moment: Moment, scale: number): Moment {
  const unit = 10n ** BigInt(7 - scale);
  const ticks = ((moment.ticks + unit / 2n) / unit) * unit;
  return ticks < ticksPerDay ? { ...moment, ticks } : { ...moment, days: moment.days + 1, ticks: 0n };
}
