/** A point in time at which something is called unless it is moved on. */
export interface Deadline {
  /** For a new run; null for none. */
  reset(leftMs: number | null): void;
  /** The same, by the host's clock: whatever time passed on the way here is over already. */
  resetTo(atMs: number): void;
  /** Throws for a number lower than one seen before: an answer that came late. */
  extend(number: number, leftMs: number | null): void;
  extendTo(number: number, atMs: number): void;
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

  function setTo(atMs: number | null): void {
    at = atMs;
    look();
  }

  const set = (leftMs: number | null) => setTo(leftMs === null ? null : bootMs() + leftMs);

  function raise(number: number): void {
    if (number < highest) throw new Error(`number ${number} is lower than ${highest}`);
    highest = number;
  }

  return {
    reset: set,
    resetTo: setTo,
    extend(number, leftMs) {
      raise(number);
      set(leftMs);
    },
    extendTo(number, atMs) {
      raise(number);
      setTo(atMs);
    },
    clear: () => set(null),
    get number() {
      return highest;
    },
  };
}
