import { compared, type Figure, figuresOf, verdictOf } from "./figure.ts";
import { storeFigure } from "./stored-figures.ts";

/** Percentile by nearest rank: the value that this share of all values does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** Median and range of the ratios of paired measurements. */
export function ratios(
  holdfast: readonly number[],
  peer: readonly number[],
): { median: number; min: number; max: number } {
  const each = holdfast.map((value, index) => value / (peer[index] ?? Number.NaN));
  return { median: median(each), min: Math.min(...each), max: Math.max(...each) };
}

/**
 * Prints one figure with its target, whether it is met, and the figure of the last run. Throws for a figure that could
 * not be read: it is not a number, or a quantity with a unit is zero.
 */
export function print(name: string, value: string, bar = ""): void {
  const figures: readonly Figure[] = figuresOf(value);
  if (figures.some(({ isRead }) => !isRead)) throw new Error(`the figure was not read: ${name.trim()}: ${value}`);
  const before = storeFigure(name, value);
  const notes = [
    ...(bar === "" ? [] : [`bar ${bar}${verdictOf(figures, bar)}`]),
    ...(before === undefined ? [] : [compared(figures, before, bar)]),
  ];
  process.stdout.write(`${[`${name.padEnd(58)} ${value.padStart(22)}`, ...notes].join("   ")}\n`);
}

export function ms(value: number): string {
  return `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`;
}

export function times(value: number): string {
  return `${value.toFixed(2)}x`;
}
