import { ApiError, ConnectionFailed } from "./errors.ts";

/** Number of retries and the pauses before them. */
export interface RetryPolicy {
  /** Number of attempts after the first. */
  readonly retries: number;
  /** Pause before the second attempt, with a jitter of half; it doubles with each further attempt. */
  readonly firstPauseMs: number;
  /** Longest pause. A longer Retry-After is reported to the caller instead of a retry. */
  readonly longestPauseMs: number;
}

/** The default policy, with about 1.4 s of pauses in total. */
export const defaultRetries: RetryPolicy = { retries: 3, firstPauseMs: 200, longestPauseMs: 30_000 };

/** Statuses of temporary errors, of the API and of proxies in front of it. */
const retryableStatuses = new Set([429, 502, 503, 504]);

/** Pause before the next attempt; undefined when the error is final. `attempt` counts from 1, `random` is in [0, 1). */
export function pauseBeforeRetry(
  error: unknown,
  attempt: number,
  { retries, firstPauseMs, longestPauseMs }: RetryPolicy,
  random: number,
): number | undefined {
  if (attempt > retries) return undefined;
  const jittered = Math.min(firstPauseMs * 2 ** (attempt - 1), longestPauseMs) * (0.5 + random);
  if (error instanceof ConnectionFailed) return jittered;
  if (!(error instanceof ApiError) || !retryableStatuses.has(error.status)) return undefined;
  const { retryAfterMs = 0 } = error;
  return retryAfterMs > longestPauseMs ? undefined : Math.max(jittered, retryAfterMs);
}

/** Resolves after the time; rejects with the signal's reason when it aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    if (signal?.aborted === true) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}
