/** A bounded pool. Items are created on demand; `take` waits until one is free, first come first served. */
export interface Pool<T> {
  take(): Promise<T>;
  /** Returns an item to the pool. */
  release(item: T): void;
}

export function createPool<T>(max: number, create: () => T): Pool<T> {
  const idle: T[] = [];
  const waiting: ((item: T) => void)[] = [];
  let created = 0;
  return {
    async take() {
      const item = idle.pop();
      if (item !== undefined) return item;
      if (created === max)
        return new Promise((resolve) => {
          waiting.push(resolve);
        });
      created += 1;
      return create();
    },
    release(item) {
      const next = waiting.shift();
      if (next === undefined) idle.push(item);
      else next(item);
    },
  };
}
