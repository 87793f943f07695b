/** How long log waits before it is stored. */
export interface ArchivePace {
  /** The longest that the first of so many waiting bytes waits. */
  waitsMs(bytes: number): number;
  /** They are being stored. */
  stores(bytes: number): void;
}

/** Under load the newest restorable moment is seconds old. */
const busyBytes = 64 << 10;
const busyMs = 2_000;
/** An idle engine writes less within the longest wait, but for the whole pages that follow a checkpoint. */
const livelyBytes = 4 << 10;
const livelyMs = 5_000;
const mostCredits = 10;

/**
 * Log waits for `idleMs` at the most, and that of an engine that has just been written to for seconds, so that a restore reaches the
 * last write of a short burst soon. A small object takes a credit, of which a minute brings one: a service that is idle, or trickles all
 * day, has no more objects than one each `idleMs`.
 */
export function createArchivePace(idleMs: number, now: () => number): ArchivePace {
  let credits = mostCredits;
  let countedMs = now();
  /** The last object may have ended in the midst of a burst: its end follows soon. */
  let isFollowed = false;

  function count(): void {
    const elapsed = Math.max(0, now() - countedMs);
    credits = Math.min(mostCredits, credits + elapsed / (idleMs + livelyMs));
    countedMs = now();
  }

  return {
    waitsMs(bytes) {
      if (bytes >= busyBytes) return Math.min(busyMs, idleMs);
      count();
      const isLively = (bytes >= livelyBytes || isFollowed) && credits >= 1;
      return isLively ? Math.min(livelyMs, idleMs) : idleMs;
    },
    stores(bytes) {
      count();
      if (bytes < busyBytes) credits = Math.max(0, credits - 1);
      isFollowed = bytes >= livelyBytes;
    },
  };
}
