import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Parameter } from "@holdfast/common/engine-catalog/parameter.ts";
import { printQuantity } from "@holdfast/common/engine-catalog/quantity.ts";

/** One value of one parameter. */
export interface Extreme {
  readonly name: string;
  readonly value: string;
}

export type End = "least" | "greatest";

/** Values of text parameters, in place of a least and a greatest one. */
const texts: Readonly<Record<string, readonly string[]>> = {
  TimeZone: ["Etc/GMT+12", "Pacific/Kiritimati"],
  "notify-keyspace-events": ["", "KEA"],
};

/**
 * Values at one end of the range of each parameter that passes. `greatest`: the last value. `least`: all other extreme
 * values, that is off, the value after off, the lowest one that enables it, and all enum members but the last.
 */
export function extremesOf(
  engine: string,
  version: string,
  end: End,
  passes: (parameter: Parameter) => boolean,
): readonly Extreme[] {
  return [...parametersOf(engine, version).values()].filter(passes).flatMap((parameter) => {
    const all = valuesOf(parameter);
    const values = end === "least" ? all.slice(0, -1) : all.slice(-1);
    return values.filter((value) => value !== parameter.default).map((value) => ({ name: parameter.name, value }));
  });
}

/** Least first. */
function valuesOf({ name, type, unit, minimum, maximum, minimumEnabled, values }: Parameter): readonly string[] {
  if (type === "text") {
    const chosen = texts[name];
    if (chosen === undefined) throw new Error(`no extreme values of the text ${name}`);
    return chosen;
  }
  if (type === "boolean" && values.length === 0) return ["off", "on"];
  const isOff = minimum !== null && minimum <= 0 && type !== "real";
  const numbers = [minimum, isOff && minimumEnabled === null ? minimum + 1 : null, minimumEnabled, maximum];
  const printed = numbers.flatMap((number) =>
    number === null ? [] : [unit === null ? String(number) : printQuantity(number, unit)],
  );
  return [...new Set([...values, ...printed])];
}

/** Runs of at most `size`. */
export function batchesOf<T>(all: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));
}
