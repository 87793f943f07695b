const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;

/** Waits after the first, second, ... failed attempt; after the last one nothing more is tried. */
const waitsMs = {
  standard: [secondMs, 2 * secondMs],
  extended: [secondMs, 2 * secondMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 5 * hourMs, 10 * hourMs],
} as const;

export type RetryPolicyName = keyof typeof waitsMs;

/** How long to wait after this attempt (from 1) failed, or undefined when it was the last. */
export function waitAfterMs(policy: RetryPolicyName, attempt: number): number | undefined {
  return waitsMs[policy][attempt - 1];
}

/** All of one attempt: resolving, connecting, sending, waiting for the answer. */
export const attemptMs = 10 * secondMs;
