import { uptime } from "node:os";

/** Age up to which a reading of the host's clock is extrapolated. A reading costs about ten microseconds. */
const maxReadingAgeMs = 5;

/**
 * Milliseconds since the host booted, including suspend, which the kernel's monotonic clock leaves out. The value never
 * decreases. For up to 5 ms after a suspend it may lack the suspended time.
 */
export function createBootClock(
  monotonicMs = () => performance.now(),
  uptimeMs = () => uptime() * 1_000,
): () => number {
  let readAtMs = Number.NEGATIVE_INFINITY;
  let readMs = 0;
  let latestMs = 0;
  return () => {
    const nowMs = monotonicMs();
    if (nowMs - readAtMs >= maxReadingAgeMs) {
      readAtMs = nowMs;
      readMs = uptimeMs();
    }
    latestMs = Math.max(latestMs, readMs + nowMs - readAtMs);
    return latestMs;
  };
}
