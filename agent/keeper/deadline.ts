/** A point in time at which `onPassed` is called, unless the deadline is extended before. */
export interface Deadline {
  /** Sets the deadline of a new run, in milliseconds since the start of the host; null for none. */
  reset(atMs: number | null): void;
  /** Moves the deadline. Throws for a number lower than one seen before, which comes from a late response. */
  extend(number: number, atMs: number | null): void;
  clear(): void;
  /** The highest number of an extension so far. */
  readonly number: number;
}

/** Timers do not count time in suspend and the deadline does, so it is checked at least this often. */
const maxTimerMs = 250;

export function createDeadline(bootMs: () => number, onPassed: () => void): Deadline {
  let at: number | null = null;
  let highest = 0;
  let timer: NodeJS.Timeout | undefined;

  function check(): void {
    clearTimeout(timer);
    if (at === null) return;
    const remainingMs = at - bootMs();
    if (remainingMs > 0) {
      timer = setTimeout(check, Math.min(remainingMs, maxTimerMs));
      return;
    }
    at = null;
    onPassed();
  }

  function set(atMs: number | null): void {
    at = atMs;
    check();
  }

  return {
    reset: set,
    extend(number, atMs) {
      if (number < highest) throw new Error(`number ${number} is lower than ${highest}`);
      highest = number;
      set(atMs);
    },
    clear: () => set(null),
    get number() {
      return highest;
    },
  };
}
