import type { LogPositions } from "@holdfast/controller/services/engine/log-positions.ts";

/**
 * Positions of a fixture engine that are sets of transactions, such as `a:1-5,b:3`: two members can each have commits
 * that the other lacks. Its positions count no bytes.
 */
export const setPositions: LogPositions = {
  compare(a, b) {
    const [ofA, ofB] = [transactionsOf(a), transactionsOf(b)];
    const [hasAllOfB, hasAllOfA] = [ofB.isSubsetOf(ofA), ofA.isSubsetOf(ofB)];
    if (hasAllOfA && hasAllOfB) return "same";
    if (hasAllOfA) return "before";
    return hasAllOfB ? "after" : "diverged";
  },
};

function transactionsOf(text: string): Set<string> {
  const ranges = text.split(",").filter((range) => range !== "");
  return new Set(
    ranges.flatMap((range) => {
      const [source = "", first = 0, last = first] = range.split(/[:-]/);
      return Array.from({ length: Number(last) - Number(first) + 1 }, (_, at) => `${source}:${Number(first) + at}`);
    }),
  );
}
