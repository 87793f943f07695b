import { ApiError, ConnectionFailed } from "./errors.ts";

/** Number of retries and the pauses before them. */
export interface RetryPolicy {
  /** Number of attempts after the first. */
  readonly retries: number;
  /** Pause before the second attempt, with a jitter of half; it doubles with each further attempt. */
  readonly firstPauseMs: number;
  /** Maximum pause. After a response with a longer Retry-After, the caller gets the error instead of a retry. */
  readonly maxPauseMs: number;
}

/** The default policy, with about 1.4 s of pauses in total. */
export const defaultRetries: RetryPolicy = { retries: 3, firstPauseMs: 200, maxPauseMs: 30_000 };

/** Statuses of temporary errors, of the API and of proxies in front of it. */
const retryableStatuses = new Set([429, 502, 503, 504]);

/** True if the API did not respond: there was no response, or one of a proxy in front of it. */
export function isOutage(error: unknown): boolean {
  if (error instanceof ConnectionFailed) return true;
  return error instanceof ApiError && error.code === "unknown" && [502, 503, 504].includes(error.status);
}

/** Pause before the next attempt; undefined if the error is final. `attempt` counts from 1, `random` is in [0, 1). */
export function pauseBeforeRetry(
  error: unknown,
  attempt: number,
  { retries, firstPauseMs, maxPauseMs }: RetryPolicy,
  random: number,
): number | undefined {
  if (attempt > retries) return undefined;
  const jittered = Math.min(firstPauseMs * 2 ** (attempt - 1), maxPauseMs) * (0.5 + random);
  if (error instanceof ConnectionFailed) return jittered;
  if (!(error instanceof ApiError) || !retryableStatuses.has(error.status)) return undefined;
  const { retryAfterMs = 0 } = error;
  return retryAfterMs > maxPauseMs ? undefined : Math.max(jittered, retryAfterMs);
}

/** Milliseconds of a Retry-After header in seconds or as a date (RFC 9110, 10.2.3); undefined when invalid. */
export function retryAfterMsOf(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  if (/^\d+$/.test(header)) return Number(header) * 1_000;
  const time = Date.parse(header);
  return Number.isNaN(time) ? undefined : Math.max(0, time - now);
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
