import { shortFigure } from "./chart.ts";

/** The measure of a number, which a table prints with its unit. */
export type Measure = "bytes" | "seconds" | "milliseconds" | "percent";

const suffixes: readonly (readonly [RegExp, Measure])[] = [
  [/_bytes$/, "bytes"],
  [/_seconds$/, "seconds"],
  [/_ms$/, "milliseconds"],
  [/_pct$/, "percent"],
];
/** Columns in milliseconds whose names have no unit. */
const millisecondColumns = new Set(["total_time", "mean_time"]);

/** The measure of a column by its name; undefined for counts. */
export function measureOf(column: string): Measure | undefined {
  if (millisecondColumns.has(column)) return "milliseconds";
  return suffixes.find(([suffix]) => suffix.test(column))?.[1];
}

/** The name of a column without the unit, which its numbers have. */
export function withoutUnit(column: string): string {
  const suffix = suffixes.find(([pattern]) => pattern.test(column))?.[0];
  return suffix === undefined ? column : column.replace(suffix, "");
}

/** A number with its unit and at most four digits, such as "7.86 MB", "250ms", "1.5s", "36m" or "12%". */
export function measureText(value: number, measure: Measure): string {
  switch (measure) {
    case "bytes":
      return shortFigure(value, "bytes");
    case "seconds":
      return durationText(value * 1_000);
    case "milliseconds":
      return durationText(value);
    case "percent":
      return `${digits(value)}%`;
  }
}

const durationUnits = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
] as const;

/** A duration in its largest unit of which there are two; exactly one is printed in that unit, as flags take it. */
function durationText(ms: number): string {
  const found = durationUnits.find(([scale]) => ms === scale || ms >= 2 * scale);
  if (found === undefined) return ms === 0 ? "0s" : `${digits(ms)}ms`;
  const [scale, letter] = found;
  return `${digits(ms / scale)}${letter}`;
}

function digits(value: number): string {
  return String(value >= 1_000 ? Math.round(value) : Number(value.toPrecision(3)));
}
