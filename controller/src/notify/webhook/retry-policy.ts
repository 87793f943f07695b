const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;

/** Delays after the first, second, ... failed attempt; after the last one there is no further attempt. */
const waitsMs = {
  standard: [secondMs, 2 * secondMs],
  extended: [secondMs, 2 * secondMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 5 * hourMs, 10 * hourMs],
} as const;

export type RetryPolicyName = keyof typeof waitsMs;

/**
 * Delay after this attempt (from 1) failed; undefined if it was the last. A longer wait that the endpoint requests
 * (Retry-After) applies under `extended` only: the times of `standard` are fixed by spec 2.
 */
export function waitAfterMs(policy: RetryPolicyName, attempt: number, retryAfterMs = 0): number | undefined {
  const wait = waitsMs[policy][attempt - 1];
  return wait === undefined || policy === "standard" ? wait : Math.max(wait, retryAfterMs);
}

/** Deadline of one attempt, from name resolution to the response. */
export const attemptMs = 10 * secondMs;
