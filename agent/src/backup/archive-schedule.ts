/** Decides how long log is buffered before it is stored as an object. */
export interface ArchiveSchedule {
  /** Longest wait in milliseconds of the first of this number of buffered bytes. */
  delayMs(bytes: number): number;
  /** Records that these bytes are stored now. */
  stored(bytes: number): void;
}

/** Size of buffered log from which on it is stored within `busyMs`. */
const busyBytes = 64 << 10;
const busyMs = 2_000;
/** An idle engine writes less than this within the longest wait, except for full pages after a checkpoint. */
const activeBytes = 4 << 10;
const activeMs = 5_000;
const maxCredits = 10;

/**
 * Log waits at most `idleMs`, and only seconds after a write to an idle engine, so that a restore reaches the last
 * write of a short burst. A small object costs one credit, and about one credit a minute accrues: an idle or slowly
 * written service stores no more than one object per `idleMs`.
 */
export function createArchiveSchedule(idleMs: number, now: () => number): ArchiveSchedule {
  let credits = maxCredits;
  let accruedMs = now();
  /** True if the last object ended within a burst of writes, so that the rest of the burst follows. */
  let isInBurst = false;

  function accrueCredits(): void {
    const elapsed = Math.max(0, now() - accruedMs);
    credits = Math.min(maxCredits, credits + elapsed / (idleMs + activeMs));
    accruedMs = now();
  }

  return {
    delayMs(bytes) {
      if (bytes >= busyBytes) return Math.min(busyMs, idleMs);
      accrueCredits();
      const isActive = (bytes >= activeBytes || isInBurst) && credits >= 1;
      return isActive ? Math.min(activeMs, idleMs) : idleMs;
    },
    stored(bytes) {
      accrueCredits();
      if (bytes < busyBytes) credits = Math.max(0, credits - 1);
      isInBurst = bytes >= activeBytes;
    },
  };
}
