const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;

/** Delays after the first, second, ... failed attempt; after the last one there is no further attempt. */
const waitsMs = {
  standard: [secondMs, 2 * secondMs],
  extended: [secondMs, 2 * secondMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 5 * hourMs, 10 * hourMs],
} as const;

export type RetryPolicyName = keyof typeof waitsMs;

/** Delay after this attempt (from 1) failed; undefined when it was the last. */
export function waitAfterMs(policy: RetryPolicyName, attempt: number): number | undefined {
  return waitsMs[policy][attempt - 1];
}

/** Deadline of one attempt, from name resolution to the response. */
export const attemptMs = 10 * secondMs;
