import { InvalidArgumentError } from "commander";

/** Parses an integer, at least 0. */
export function integer(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("it is not an integer");
  return Number(text);
}

/** Parses a duration such as 5m, 1h or 5 (minutes) to minutes. */
export function minutes(text: string): number {
  const [, number, unit] = /^(\d{1,6})([mh]?)$/.exec(text) ?? [];
  if (number === undefined) throw new InvalidArgumentError("it is not a time such as 5m or 1h");
  return Number(number) * (unit === "h" ? 60 : 1);
}

/** Parses a factor such as 1.5. */
export function factor(text: string): number {
  if (!/^\d{1,9}(\.\d{1,9})?$/.test(text)) throw new InvalidArgumentError("it is not a number such as 1.5");
  return Number(text);
}

/** Collects name=value of a repeatable flag. */
export function pair(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const equals = text.indexOf("=");
  if (equals < 1) throw new InvalidArgumentError("it must have the format name=value");
  return { ...before, [text.slice(0, equals)]: text.slice(equals + 1) };
}

/** Collects the values of a repeatable flag. */
export function several(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** Removes undefined members, those of absent flags. */
export function omitUndefined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}

/** The first `limit` items; all by default. */
export async function take<T>(items: AsyncIterable<T>, limit = Infinity): Promise<T[]> {
  const taken: T[] = [];
  for await (const item of items) {
    taken.push(item);
    if (taken.length >= limit) break;
  }
  return taken;
}
