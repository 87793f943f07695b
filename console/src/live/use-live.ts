import { useEffect, useState } from "preact/hooks";
import { onChange } from "./changes.ts";

/** An answer of the API that follows its changes. */
export interface Live<T> {
  /** The newest answer; undefined before the first. */
  readonly data: T | undefined;
  /** The error of the last request; undefined after an answer. */
  readonly error: unknown;
  reload(): void;
}

interface Options<T> {
  /** Only events of this service load again; absent: all events. */
  readonly service?: string;
  /** Time to the next request while the page is visible, such as of what is unfinished. */
  readonly everyMs?: number | ((data: T | undefined) => number | undefined);
}

/** Newest answers by key, which a page shows at once when it is opened again. */
const newest = new Map<string, unknown>();
const newestMax = 200;
/** Several events of one change load once. */
const settleMs = 120;

/** Loads an answer, and again at each event, at a visit of the page and after `everyMs`. */
export function useLive<T>(key: string, load: (signal: AbortSignal) => Promise<T>, options: Options<T> = {}): Live<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: unknown }>({ key });
  const [trigger] = useState<{ run: () => void }>({ run: () => undefined });
  useEffect(() => {
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isLoading = false;
    let isDue = false;
    const later = (ms: number | undefined) => {
      clearTimeout(timer);
      if (ms !== undefined) timer = setTimeout(run, ms);
    };
    function run(): void {
      if (document.visibilityState === "hidden") return;
      if (isLoading) {
        isDue = true;
        return;
      }
      isLoading = true;
      isDue = false;
      const nextMs = (data: T | undefined) =>
        typeof options.everyMs === "function" ? options.everyMs(data) : options.everyMs;
      load(ending.signal)
        .then(
          (data) => {
            if (newest.size >= newestMax) newest.clear();
            newest.set(key, data);
            setState({ key, data });
            later(nextMs(data));
          },
          (error: unknown) => {
            if (ending.signal.aborted) return;
            setState((before) => ({ ...before, key, error }));
            later(5_000);
          },
        )
        .finally(() => {
          isLoading = false;
          if (isDue && !ending.signal.aborted) later(settleMs);
        });
    }
    trigger.run = run;
    run();
    const stop = onChange(({ service }) => {
      if (options.service === undefined || service === undefined || service === options.service) later(settleMs);
    });
    document.addEventListener("visibilitychange", run);
    return () => {
      ending.abort();
      clearTimeout(timer);
      stop();
      document.removeEventListener("visibilitychange", run);
    };
  }, [key]);
  const data = state.key === key && state.data !== undefined ? state.data : (newest.get(key) as T | undefined);
  return { data, error: state.key === key ? state.error : undefined, reload: () => trigger.run() };
}
