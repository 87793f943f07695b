/** The range of messages that one claim reads, and what it found. */
export interface ClaimScan {
  /** Messages in order with ids up to this one are skipped. */
  readonly afterId: string;
  /** True if the claim also reads delayed messages that became visible, and removes exhausted ones. */
  readonly isFull: boolean;
  found(messages: readonly { readonly id: string; readonly isInOrder: boolean }[], max: number): void;
  /** Reports that the claim failed. */
  failed(): void;
}

const minFullScanIntervalMs = 1000;
/** The interval of full scans is at least their duration times this factor, so they take at most 5% of the time. */
const minIntervalFactor = 20;

/**
 * Chooses where claims start to read. Vacuum cannot remove deleted rows while an old snapshot exists, and each claim
 * would skip them again; therefore most claims start at the id where the last one ended. Messages with lower ids, from
 * a transaction that committed late or with a delay, are found by full scans: once a second, less often when they take
 * long, and with each claim as long as they fill their batch.
 */
export function createClaimScans(now: () => number = () => performance.now()): { next(): ClaimScan } {
  let floor = 0n;
  let nextFullMs = now();
  return {
    next() {
      const startedAt = now();
      const isFull = startedAt >= nextFullMs;
      if (isFull) nextFullMs = Number.POSITIVE_INFINITY;
      return {
        afterId: isFull ? "0" : String(floor),
        isFull,
        failed() {
          if (isFull) nextFullMs = now();
        },
        found(messages, max) {
          const inOrder = messages.filter((message) => message.isInOrder);
          // Another worker may release a message with a lower id; the next full scan finds it.
          for (const { id } of inOrder) if (BigInt(id) > floor) floor = BigInt(id);
          if (!isFull) return;
          const hasMore = messages.length >= max && inOrder.length < messages.length;
          nextFullMs = hasMore
            ? now()
            : now() + Math.max(minFullScanIntervalMs, (now() - startedAt) * minIntervalFactor);
        },
      };
    },
  };
}
