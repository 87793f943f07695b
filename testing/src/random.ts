/** Random choices that a seed repeats. */
export interface Random {
  /** 0 <= x < 1. */
  next(): number;
  /** An integer from `least` to `most`, both included. */
  between(min: number, max: number): number;
  pick<T>(items: readonly T[]): T;
  /** A new generator, so that the draws of one reader do not change the draws of another. */
  fork(): Random;
}

/** Mulberry32: small, and the same on every machine. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const between = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  return {
    next,
    between,
    pick(items) {
      const item = items[between(0, items.length - 1)];
      if (item === undefined) throw new Error("nothing to pick from");
      return item;
    },
    fork: () => createRandom(between(0, 0xffff_ffff)),
  };
}
