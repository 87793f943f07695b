import { InvalidArgumentError } from "commander";

/** A whole number of a flag. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("it is not a whole number");
  return Number(text);
}

/** Minutes of a flag such as 5m, 1h, or 5. */
export function minutes(text: string): number {
  const [, number, unit] = /^(\d{1,6})([mh]?)$/.exec(text) ?? [];
  if (number === undefined) throw new InvalidArgumentError("it is not a time such as 5m or 1h");
  return Number(number) * (unit === "h" ? 60 : 1);
}

/** A factor of a flag, such as 1.5. */
export function factor(text: string): number {
  if (!/^\d{1,9}(\.\d{1,9})?$/.test(text)) throw new InvalidArgumentError("it is not a number such as 1.5");
  return Number(text);
}

/** Collects name=value of a flag that may be repeated. */
export function pair(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const equals = text.indexOf("=");
  if (equals < 1) throw new InvalidArgumentError("it is not of the form name=value");
  return { ...before, [text.slice(0, equals)]: text.slice(equals + 1) };
}

/** Collects the values of a flag that may be repeated. */
export function several(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** Leaves out flags that were not given. */
export function given<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}

/** The first of them, all by default. */
export async function take<T>(items: AsyncIterable<T>, limit = Infinity): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of items) {
    taken.push(item);
    if (taken.length >= limit) break;
  }
  return taken;
}
