/** Counts by key, such as calls in flight of each caller. Its memory has only the keys that are in use. */
export interface KeyedCounter {
  /** The count of a key; 0 for one that is not in use. */
  of(key: string): number;
  /** Adds to the count of a key, which never falls below 0. Returns the new count. */
  add(key: string, amount?: number): number;
  /**
   * Adds the amount, 1 by default, to the key of every limit, or to none of them: then `exceeded` is the first limit
   * whose maximum the sum would exceed.
   */
  take<L extends CountLimit>(limits: readonly L[], amount?: number): Taken<L>;
  /** The key with the highest count, the one in use for longest of several; undefined when no key is in use. */
  highest(): { readonly key: string; readonly count: number } | undefined;
}

export interface CountLimit {
  readonly key: string;
  readonly max: number;
}

export type Taken<L> =
  | {
      readonly exceeded: undefined;
      /** Takes the amount back; later calls do nothing. */
      release(): void;
    }
  | { readonly exceeded: L };

export function createKeyedCounter(): KeyedCounter {
  const counts = new Map<string, number>();
  const of = (key: string) => counts.get(key) ?? 0;

  function add(key: string, amount = 1): number {
    const count = Math.max(of(key) + amount, 0);
    if (count === 0) counts.delete(key);
    else counts.set(key, count);
    return count;
  }

  return {
    of,
    add,
    take(limits, amount = 1) {
      const exceeded = limits.find(({ key, max }) => of(key) + amount > max);
      if (exceeded !== undefined) return { exceeded };
      for (const { key } of limits) add(key, amount);
      let isReleased = false;
      return {
        exceeded: undefined,
        release() {
          if (isReleased) return;
          isReleased = true;
          for (const { key } of limits) add(key, -amount);
        },
      };
    },
    highest() {
      let highest: { key: string; count: number } | undefined;
      for (const [key, count] of counts) if (count > (highest?.count ?? 0)) highest = { key, count };
      return highest;
    },
  };
}
