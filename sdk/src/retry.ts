import { ApiError, ConnectionFailed } from "./errors.ts";

/** How often a request is sent again, and when. */
export interface RetryPolicy {
  /** Attempts after the first. */
  readonly retries: number;
  /** Pause before the second attempt, give or take half; it doubles with each further one. */
  readonly firstPauseMs: number;
  /** A Retry-After beyond this is the caller's to wait for. */
  readonly longestPauseMs: number;
}

/** The default of a client: about 1.4 s of pauses in all. */
export const usualRetries: RetryPolicy = { retries: 3, firstPauseMs: 200, longestPauseMs: 30_000 };

/** Statuses that say "not now": of the API, and of proxies before it. */
const passing = new Set([429, 502, 503, 504]);

/**
 * Pause before the next attempt, or undefined when the error stands. `attempt` counts from 1, `random` is in [0, 1).
 */
export function pauseBeforeRetry(
  error: unknown,
  attempt: number,
  { retries, firstPauseMs, longestPauseMs }: RetryPolicy,
  random: number,
): number | undefined {
  if (attempt > retries) return undefined;
  const wanted = Math.min(firstPauseMs * 2 ** (attempt - 1), longestPauseMs) * (0.5 + random);
  if (error instanceof ConnectionFailed) return wanted;
  if (!(error instanceof ApiError) || !passing.has(error.status)) return undefined;
  const { retryAfterMs = 0 } = error;
  return retryAfterMs > longestPauseMs ? undefined : Math.max(wanted, retryAfterMs);
}

/** Waits; rejects with the signal's reason. */
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
