import type { MetricPoint } from "@holdfast/sdk/responses.ts";

/** Time range and size of a chart. */
export interface ChartArea {
  /** Seconds since 1970. */
  readonly fromS: number;
  readonly toS: number;
  /** Width in characters, height in lines. */
  readonly width: number;
  readonly height: number;
}

const levels = ["\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"];

/**
 * The lines of a bar chart from 0 to `top`, the highest first. A column shows the highest average of its interval, and
 * is empty without samples.
 */
export function drawChart(
  points: readonly MetricPoint[],
  top: number,
  { fromS, toS, width, height }: ChartArea,
): string[] {
  const columns = Array.from({ length: width }, (): number | undefined => undefined);
  for (const [timeS, average] of points) {
    const column = Math.floor(((timeS - fromS) / (toS - fromS)) * width);
    if (column >= 0 && column < width) columns[column] = Math.max(columns[column] ?? 0, average);
  }
  const filled = columns.map((value) => {
    if (value === undefined) return 0;
    // A value above zero has at least the smallest bar.
    return Math.max(1, Math.round((top <= 0 ? 0 : Math.min(value / top, 1)) * height * levels.length));
  });
  return Array.from({ length: height }, (_, line) => {
    const below = (height - 1 - line) * levels.length;
    return filled.map((eighths) => levels[Math.min(eighths - below, levels.length) - 1] ?? " ").join("");
  });
}

/** The line below a chart: the times of its first and last column, such as "11:05          12:05". */
export function timeAxis({ fromS, toS, width }: ChartArea): string {
  const start = toS - fromS > 86_400 ? 5 : 11;
  const textOf = (timeS: number) => new Date(timeS * 1_000).toISOString().slice(start, 16).replace("T", " ");
  const from = textOf(fromS);
  return `${from}${textOf(toS).padStart(Math.max(width - from.length, from.length + 1))} UTC`;
}

const scales: readonly (readonly [number, string])[] = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

const short = new Map([
  ["percent", "%"],
  ["per second", "/s"],
  ["per minute", "/min"],
  ["bytes per second", "B/s"],
  ["bytes", "B"],
  ["seconds", "s"],
]);

/** Formats a value with three significant digits and its unit, such as "1.23 MB/s". */
export function shortFigure(value: number, unit: string): string {
  const [scale, letter] = scales.find(([factor]) => Math.abs(value) >= factor) ?? [1, ""];
  const scaled = value / scale;
  const digits = Math.abs(scaled) >= 100 || Number.isInteger(scaled) ? 0 : Math.abs(scaled) >= 10 ? 1 : 2;
  return `${scaled.toFixed(digits)}${letter === "" ? "" : ` ${letter}`}${short.get(unit) ?? ""}`;
}
