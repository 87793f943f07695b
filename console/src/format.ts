/** Formats values for users: ages, sizes, prices. */

const units = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;

/** A duration in its greatest unit: "3,649 d", "5 h", "12 min", "40 s". */
export function durationText(seconds: number): string {
  const rounded = Math.max(0, Math.floor(seconds));
  const [unit, size] = units.find(([, each]) => rounded >= each) ?? ["s", 1];
  return `${numberText(Math.floor(rounded / size))} ${unit}`;
}

/** The time from `start` to `end`, such as "9 s"; empty before the end. */
export function spanText(start: string, end: string | null): string {
  return end === null ? "" : durationText((Date.parse(end) - Date.parse(start)) / 1_000);
}

/** The age of a time: "just now", "5 min ago"; "in 5 min" for a future time. */
export function ageText(time: string, now: number): string {
  const seconds = (now - Date.parse(time)) / 1_000;
  if (Number.isNaN(seconds)) return time;
  if (Math.abs(seconds) < 5) return "just now";
  return seconds > 0 ? `${durationText(seconds)} ago` : `in ${durationText(-seconds)}`;
}

/** Bytes in a unit of 1,024: "1.5 GiB". */
export function bytesText(bytes: number): string {
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = bytes < 1 ? 0 : Math.min(names.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1_024 ** power;
  return `${numberText(value)} ${names[power]}`;
}

/** A number with at most three significant decimals and separated thousands: "1,204", "0.25". */
export function numberText(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** A value of a metric with its unit, as the catalog names it. */
export function metricText(value: number, unit: string): string {
  if (unit === "percent") return `${numberText(value)}%`;
  if (unit === "bytes") return bytesText(value);
  if (unit === "bytes per second") return `${bytesText(value)}/s`;
  if (unit === "per second") return `${numberText(value)}/s`;
  if (unit === "per minute") return `${numberText(value)}/min`;
  return unit === "seconds" ? `${numberText(value)} s` : numberText(value);
}

/** A price of a month: "$12.00". */
export function priceText(amount: number, currency: string): string {
  return amount.toLocaleString("en", { style: "currency", currency });
}

/** Label of a name of the API: "Storage size GB" for "storage_size_gb". */
export function labelOf(name: string): string {
  const text = name.replaceAll(/[_-]+/g, " ").replaceAll(/\b(api|gb|id|cidrs?|url|uri|ca|pct|cpu|iops)\b/g, upper);
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function upper(word: string): string {
  return word === "cidrs" ? "CIDRs" : word.toUpperCase();
}
