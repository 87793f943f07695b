/** The source of time. Tests replace it to step time. */
export interface Clock {
  /** Wall time in milliseconds since 1970. */
  now(): number;
  /** Milliseconds that never decrease. They include suspension of the process, but not of the host. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => Number(process.hrtime.bigint() / 1_000_000n),
};
