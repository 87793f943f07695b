/** When the requests of a rate came, the oldest first. */
export interface RequestTimes {
  readonly count: number;
  /** Undefined for none. */
  readonly oldest: number | undefined;
  add(at: number): void;
  /** All that came up to then. */
  forget(until: number): void;
}

/** Forgotten ones at the front are cut off once there are so many, and as many as the others. */
const cutLeast = 1_024;

export function createRequestTimes(): RequestTimes {
  let times: number[] = [];
  let first = 0;
  return {
    get count() {
      return times.length - first;
    },
    get oldest() {
      return times[first];
    },
    add: (at) => {
      times.push(at);
    },
    forget(until) {
      while (first < times.length && (times[first] ?? 0) <= until) first += 1;
      if (first < cutLeast || first < times.length / 2) return;
      times = times.slice(first);
      first = 0;
    },
  };
}
