/** Events within this time cause one request. */
const debounceMs = 120;
/** Least time between two requests that events cause, so that a stream of events causes one a second. */
const minIntervalMs = 1_000;

/** The next request of a page: the earliest of those that were scheduled. */
export interface Schedule {
  /** Schedules a request after this time. */
  after(ms: number): void;
  /** Schedules a request because of an event. */
  changed(): void;
  stop(): void;
}

export function createSchedule(run: () => void): Schedule {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let dueAt = Number.POSITIVE_INFINITY;
  let lastAt = Number.NEGATIVE_INFINITY;
  let isStopped = false;
  const scheduleAt = (time: number) => {
    if (isStopped || time >= dueAt) return;
    clearTimeout(timer);
    dueAt = time;
    timer = setTimeout(
      () => {
        dueAt = Number.POSITIVE_INFINITY;
        lastAt = Date.now();
        run();
      },
      Math.max(0, time - Date.now()),
    );
  };
  return {
    after: (ms) => scheduleAt(Date.now() + ms),
    changed: () => scheduleAt(Math.max(Date.now() + debounceMs, lastAt + minIntervalMs)),
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
