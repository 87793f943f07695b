/** A set of transactions that grows by one at a time, mostly in the order of their numbers. */
export interface GtidSet {
  add(server: string, number: bigint): void;
  readonly isEmpty: boolean;
  /** In the engine's format, such as `3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:5`. */
  toString(): string;
}

export function createGtidSet(): GtidSet {
  const intervals = new Map<string, { readonly first: bigint; last: bigint }[]>();
  return {
    add(server, number) {
      const all = intervals.get(server) ?? [];
      intervals.set(server, all);
      const newest = all.at(-1);
      if (newest !== undefined && number === newest.last + 1n) newest.last = number;
      else if (newest === undefined || number < newest.first || number > newest.last)
        all.push({ first: number, last: number });
    },
    get isEmpty() {
      return intervals.size === 0;
    },
    toString: () =>
      [...intervals]
        .map(([server, all]) => [server, ...all.map(({ first, last }) => `${first}-${last}`)].join(":"))
        .join(","),
  };
}
