import { useEffect, useRef, useState } from "preact/hooks";
import { Forbidden, NotFound } from "@holdfast/sdk/errors.ts";
import { onChange } from "./changes.ts";

/** A response of the API that is requested again after changes. */
export interface Live<T> {
  /** The newest response; undefined before the first. */
  readonly data: T | undefined;
  /** The error of the last request; undefined after a response. */
  readonly error: unknown;
  reload(): void;
}

interface Options<T> {
  /** Only events of this service cause a request; absent: all events. */
  readonly service?: string;
  /** Time to the next request while the page is visible, such as shorter while an operation is in progress. */
  readonly pollIntervalMs?: number | ((data: T | undefined) => number | undefined);
  /** True for a response with secrets: it is requested once for each key, and is only in the page that shows it. */
  readonly isStatic?: boolean;
  /** While true, neither events nor time cause a request. */
  readonly isPaused?: boolean;
}

/** Newest responses by key, which a page shows until the next response when it is opened again. */
const newest = new Map<string, unknown>();
const maxResponses = 200;

/** Requests a response, and again at each event, when the page becomes visible, and after `pollIntervalMs`. */
export function useLive<T>(key: string, load: (signal: AbortSignal) => Promise<T>, options: Options<T> = {}): Live<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: unknown }>({ key });
  const [trigger] = useState<{ run: () => void }>({ run: () => undefined });
  const current = useRef(options);
  current.current = options;
  const { isPaused = false } = options;
  const wasPaused = useRef(isPaused);
  useEffect(() => {
    const ending = new AbortController();
    let isLoading = false;
    let isDue = false;
    const schedule = createSchedule(run);
    function run(): void {
      if (document.visibilityState === "hidden" || current.current.isPaused === true) return;
      if (isLoading) {
        isDue = true;
        return;
      }
      isLoading = true;
      isDue = false;
      const nextMs = (data: T | undefined) => {
        const { pollIntervalMs } = current.current;
        return typeof pollIntervalMs === "function" ? pollIntervalMs(data) : pollIntervalMs;
      };
      load(ending.signal)
        .then(
          (data) => {
            if (newest.size >= maxResponses) newest.clear();
            if (options.isStatic !== true) newest.set(key, data);
            setState({ key, data });
            const ms = nextMs(data);
            if (ms !== undefined) schedule.after(ms);
          },
          (error: unknown) => {
            if (ending.signal.aborted) return;
            setState((before) => ({ ...before, key, error }));
            // Only a change of the role, which is an event, changes a missing scope.
            if (!(error instanceof Forbidden)) schedule.after(error instanceof NotFound ? 15_000 : 5_000);
          },
        )
        .finally(() => {
          isLoading = false;
          if (isDue && !ending.signal.aborted) schedule.changed();
        });
    }
    trigger.run = run;
    run();
    if (options.isStatic === true)
      return () => {
        ending.abort();
        schedule.stop();
      };
    const stop = onChange(({ service }) => {
      if (options.service === undefined || service === undefined || service === options.service) schedule.changed();
    });
    document.addEventListener("visibilitychange", run);
    return () => {
      ending.abort();
      schedule.stop();
      stop();
      document.removeEventListener("visibilitychange", run);
    };
  }, [key]);
  useEffect(() => {
    if (wasPaused.current && !isPaused) trigger.run();
    wasPaused.current = isPaused;
  }, [isPaused]);
  const data = state.key === key && state.data !== undefined ? state.data : (newest.get(key) as T | undefined);
  return { data, error: state.key === key ? state.error : undefined, reload: () => trigger.run() };
}

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
