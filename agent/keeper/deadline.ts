/** A point in time at which something is called unless it is moved on. */
export interface Deadline {
  /** For a new run; null for none. */
  reset(leftMs: number | null): void;
  /** Throws for a number lower than one seen before: an answer that came late. */
  extend(number: number, leftMs: number | null): void;
  clear(): void;
  /** The highest number so far. */
  readonly number: number;
}

/** Longest nap: timers count another clock than the deadline does. */
const napMs = 250;

export function createDeadline(bootMs: () => number, onPassed: () => void): Deadline {
  let at: number | null = null;
  let highest = 0;
  let timer: NodeJS.Timeout | undefined;

  function look(): void {
    clearTimeout(timer);
    if (at === null) return;
    const leftMs = at - bootMs();
    if (leftMs > 0) {
      timer = setTimeout(look, Math.min(leftMs, napMs));
      return;
    }
    at = null;
    onPassed();
  }

  function set(leftMs: number | null): void {
    at = leftMs === null ? null : bootMs() + leftMs;
    look();
  }

  return {
    reset: set,
    extend(number, leftMs) {
      if (number < highest) throw new Error(`number ${number} is lower than ${highest}`);
      highest = number;
      set(leftMs);
    },
    clear: () => set(null),
    get number() {
      return highest;
    },
  };
}
