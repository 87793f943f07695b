/** Bounds of one claim, and its result. */
export interface Look {
  /** Messages in order up to this id are not looked at. */
  readonly afterId: string;
  /** Whether messages that waited for their time are looked at too, and exhausted ones are swept. */
  readonly isWhole: boolean;
  found(messages: readonly { readonly id: string; readonly isInOrder: boolean }[], most: number): void;
  /** The claim did not come back. */
  failed(): void;
}

const everyMs = 1000;
/** A whole look may take a twentieth of the time. */
const shareOfTime = 20;

/**
 * Where a worker looks for messages. An old snapshot keeps deleted rows in front of all others, and each claim would
 * pass them again: most claims begin where the last one ended. Messages behind that point, of a transaction that took
 * its ids earlier or whose time has come since, are found by whole looks: each second, less often when they take long,
 * and again at once while they fill their batch.
 */
export function createLooks(now: () => number = () => performance.now()): { next(): Look } {
  let floor = 0n;
  let nextWhole = now();
  return {
    next() {
      const begun = now();
      const isWhole = begun >= nextWhole;
      if (isWhole) nextWhole = Number.POSITIVE_INFINITY;
      return {
        afterId: isWhole ? "0" : String(floor),
        isWhole,
        failed() {
          if (isWhole) nextWhole = now();
        },
        found(messages, most) {
          const inOrder = messages.filter((message) => message.isInOrder);
          // Others may hold a lock on a lower one now and give it back: the next whole look finds it.
          for (const { id } of inOrder) if (BigInt(id) > floor) floor = BigInt(id);
          if (!isWhole) return;
          const hasMore = messages.length >= most && inOrder.length < messages.length;
          nextWhole = hasMore ? now() : now() + Math.max(everyMs, (now() - begun) * shareOfTime);
        },
      };
    },
  };
}
