/**
 * Order of the log at one position to the log at another: `before` if the other has all of it and more, `diverged` if
 * each has something that the other lacks.
 */
export type PositionOrder = "before" | "same" | "after" | "diverged";

/**
 * Positions in the log of an engine that replicates from a primary. The empty string is the position of a member
 * without data.
 */
export interface LogPositions {
  /** Compares positions of the same history. Positions of different histories must not be compared. */
  compare(a: string, b: string): PositionOrder;
  /**
   * Bytes of log after `from` up to `to`; 0 if `from` is not before `to`. Absent for an engine whose positions do not
   * count bytes.
   */
  bytesBetween?(from: string, to: string): bigint;
}

/** Positions that are distances from the log's start. `bytesOf` returns 0 for a string that is not a position. */
export function bytePositions(bytesOf: (text: string) => bigint): LogPositions {
  const bytesBetween = (from: string, to: string) => {
    const bytes = bytesOf(to) - bytesOf(from);
    return bytes > 0n ? bytes : 0n;
  };
  return {
    compare(a, b) {
      if (bytesBetween(a, b) > 0n) return "before";
      return bytesBetween(b, a) > 0n ? "after" : "same";
    },
    bytesBetween,
  };
}
