import type { LogPositions } from "./log-positions.ts";

/** Numbers from the first to the last. */
type Interval = readonly [first: bigint, last: bigint];

/**
 * Positions that are sets of global transaction identifiers, such as `3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:5,...`
 * (MySQL manual, "GTID Sets"). Two members can each have transactions that the other lacks (`diverged`). Positions do
 * not count bytes.
 */
export const gtidPositions: LogPositions = {
  compare(a, b) {
    const [ofA, ofB] = [intervalsOf(a), intervalsOf(b)];
    const [aHasAll, bHasAll] = [includes(ofA, ofB), includes(ofB, ofA)];
    if (aHasAll) return bHasAll ? "same" : "after";
    return bHasAll ? "before" : "diverged";
  },
};

/** Intervals by source and tag, sorted and merged. A string that is not a GTID set has no transactions. */
function intervalsOf(set: string): ReadonlyMap<string, readonly Interval[]> {
  const found = new Map<string, Interval[]>();
  for (const part of set.replaceAll(/\s/g, "").split(",")) {
    const [source = "", ...fields] = part.toLowerCase().split(":");
    let key = source;
    for (const field of fields) {
      const [, first, last = first] = /^(\d{1,19})(?:-(\d{1,19}))?$/.exec(field) ?? [];
      if (first === undefined || last === undefined) key = `${source}:${field}`;
      else found.set(key, [...(found.get(key) ?? []), [BigInt(first), BigInt(last)]]);
    }
  }
  return new Map([...found].map(([key, intervals]) => [key, merged(intervals)]));
}

function merged(intervals: readonly Interval[]): Interval[] {
  const ordered = intervals.filter(([first, last]) => first <= last).sort(([a], [b]) => (a < b ? -1 : 1));
  const result: Interval[] = [];
  for (const [first, last] of ordered) {
    const before = result.at(-1);
    if (before === undefined || first > before[1] + 1n) result.push([first, last]);
    else if (last > before[1]) result[result.length - 1] = [before[0], last];
  }
  return result;
}

/** True if the first set contains the second. */
function includes(
  all: ReadonlyMap<string, readonly Interval[]>,
  some: ReadonlyMap<string, readonly Interval[]>,
): boolean {
  return [...some].every(([key, intervals]) => {
    const available = all.get(key) ?? [];
    return intervals.every(([first, last]) => available.some((each) => each[0] <= first && last <= each[1]));
  });
}
