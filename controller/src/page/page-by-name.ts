/** One page of a list that is whole in memory, in the order of its names. */
export function pageByName<T>(
  items: readonly T[],
  nameOf: (item: T) => string,
  after: string | undefined,
  limit: number,
): { items: T[]; next: string | undefined } {
  const sorted = items
    .filter((item) => after === undefined || nameOf(item) > after)
    .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const page = sorted.slice(0, limit);
  const last = page.at(-1);
  return { items: page, next: sorted.length > limit && last !== undefined ? nameOf(last) : undefined };
}
