import type { PageBounds } from "./cursor.ts";

/** One page of a list that is complete in memory, in the order of its names, which are unique. */
export function pageByName<T>(
  all: Iterable<T>,
  nameOf: (item: T) => string,
  { after, limit }: PageBounds,
): { items: T[]; next: string | undefined } {
  const remaining = [...all]
    .filter((item) => after === undefined || nameOf(item) > after)
    .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const items = remaining.slice(0, limit);
  const last = items.at(-1);
  return { items, next: remaining.length > limit && last !== undefined ? nameOf(last) : undefined };
}
