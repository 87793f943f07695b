import { backOffMs } from "@holdfast/common/back-off.ts";

/**
 * Consecutive failures of work whose attempts are limited by number or deadline. It is stored with the work, so that
 * another controller that takes over continues the pause. Reconcilers without a limit throw instead; their queue backs
 * off.
 */
export interface RecordedRetry {
  readonly failures: number;
  /** Earliest time of the next attempt, in milliseconds since 1970. */
  readonly at: number;
}

const initialPauseMs = 5_000;
const maxPauseMs = 300_000;
const growth = 5;

/** The record after one more failure. Pauses are 5 s, 25 s, 125 s and so on, up to `maxMs`. */
export function afterFailure(
  retry: RecordedRetry | undefined,
  now: number,
  { maxMs = maxPauseMs } = {},
): RecordedRetry {
  const failures = (retry?.failures ?? 0) + 1;
  const pauseMs = backOffMs(failures, () => 1, { initialMs: initialPauseMs, maxMs, factor: growth });
  return { failures, at: now + pauseMs };
}

/** Milliseconds until the next attempt; 0 when it may begin. A clock that was set back prolongs no pause. */
export function remainingPauseMs(retry: RecordedRetry | undefined, now: number): number {
  return retry === undefined ? 0 : Math.max(0, Math.min(retry.at - now, maxPauseMs));
}
