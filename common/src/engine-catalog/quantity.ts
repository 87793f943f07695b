import { lookUp } from "../look-up.ts";
import type { Unit } from "./parameter.ts";

const memory = { B: 1, kB: 1024, MB: 1024 ** 2, GB: 1024 ** 3, TB: 1024 ** 4 } as const;
const time = { us: 0.001, ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Size of a base unit: bytes for memory, milliseconds for time. */
const base: Readonly<Record<Unit, number>> = {
  byte: 1,
  B: 1,
  kB: 1024,
  "8kB": 8192,
  MB: 1024 ** 2,
  ms: 1,
  s: 1_000,
  min: 60_000,
};

function isMemory(unit: Unit): boolean {
  return unit === "byte" || unit.endsWith("B");
}

/** Units that a quantity may have. They are case-sensitive, as in PostgreSQL. */
export function unitsOf(unit: Unit): readonly string[] {
  return Object.keys(isMemory(unit) ? memory : time);
}

/** Parses `64MB` into a number of base units; a bare number is one already. Undefined for anything else. */
export function parseQuantity(text: string, unit: Unit): number | undefined {
  const match = /^([+-]?(?:\d+\.?\d*|\.\d+))\s*([A-Za-z]*)$/.exec(text.trim());
  if (match === null) return undefined;
  const [, digits, suffix] = match;
  const number = Number(digits);
  if (suffix === "") return number;
  const scales: Readonly<Record<string, number>> = isMemory(unit) ? memory : time;
  const scale = lookUp(scales, suffix ?? "");
  return scale === undefined ? undefined : Math.round(((number * scale) / base[unit]) * 1e6) / 1e6;
}

/** Formats a quantity in the largest unit that divides it, as PostgreSQL's SHOW does: 65536 kB -> `64MB`. */
export function printQuantity(number: number, unit: Unit): string {
  if (number <= 0 || unit === "byte" || !Number.isInteger(number)) return String(number);
  const amount = number * base[unit];
  const scales = Object.entries(isMemory(unit) ? memory : time).reverse();
  for (const [name, scale] of scales) {
    // PostgreSQL never prints a unit below the parameter's own.
    if (scale < (unit === "8kB" ? memory.kB : base[unit])) break;
    if (amount % scale === 0) return `${amount / scale}${name}`;
  }
  return String(number);
}
