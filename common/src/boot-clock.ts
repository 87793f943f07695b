import { uptime } from "node:os";

/** How long a reading of the host's clock is counted on from; a read costs ten microseconds. */
const freshMs = 5;

/**
 * Milliseconds since the host was started, suspend included, which the kernel's monotonic clock leaves out. They never go
 * back. After a suspend the first 5 ms may be told without it.
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
    if (nowMs - readAtMs >= freshMs) {
      readAtMs = nowMs;
      readMs = uptimeMs();
    }
    latestMs = Math.max(latestMs, readMs + nowMs - readAtMs);
    return latestMs;
  };
}
