/** So many of something, made as they are needed and used again: whoever finds none waits, in the order they came. */
export interface Pool<T> {
  take(): Promise<T>;
  /** What was taken is free again. */
  give(item: T): void;
}

export function createPool<T>(most: number, make: () => T): Pool<T> {
  const free: T[] = [];
  const waiting: ((item: T) => void)[] = [];
  let made = 0;
  return {
    async take() {
      const item = free.pop();
      if (item !== undefined) return item;
      if (made === most)
        return new Promise((resolve) => {
          waiting.push(resolve);
        });
      made += 1;
      return make();
    },
    give(item) {
      const next = waiting.shift();
      if (next === undefined) free.push(item);
      else next(item);
    },
  };
}
