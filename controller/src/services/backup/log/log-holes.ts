import type { LogHole, LogRange } from "../archive/archive.ts";

/** Maximum number of holes of one range; beyond it the oldest two are joined. */
const holesMax = 100;

/**
 * The parts of the ranges that can be replayed. A range with holes is split into one range before, between and after
 * its holes; a range without holes is unchanged.
 */
export function withoutHoles(log: readonly LogRange[]): readonly LogRange[] {
  return log.flatMap((range) => (range.holes === undefined ? [range] : partsOf(range, range.holes)));
}

function partsOf(range: LogRange, holes: readonly LogHole[]): LogRange[] {
  const parts: LogRange[] = [];
  const { holes: _, ...withoutHoleList } = range;
  let rest: LogRange = withoutHoleList;
  for (const hole of holes) {
    if (hole.lastSequence < rest.firstSequence) continue;
    const { tail, ...untailed } = rest;
    if (hole.firstSequence > rest.lastSequence) {
      rest = tail === undefined || hole.firstSequence > tail.lastSequence ? rest : untailed;
      continue;
    }
    if (hole.firstSequence > rest.firstSequence)
      parts.push({ ...untailed, lastSequence: hole.firstSequence - 1, toTime: Math.min(rest.toTime, hole.from) });
    const { continues: __, ...separate } = rest;
    rest = { ...separate, firstSequence: hole.lastSequence + 1, fromTime: hole.to };
  }
  return [...parts, rest];
}

/** The holes with `hole` added, in order; adjacent holes are joined. */
export function withHole(holes: readonly LogHole[], hole: LogHole): readonly LogHole[] {
  const ordered = [...holes, hole].toSorted((a, b) => a.firstSequence - b.firstSequence);
  const joined: LogHole[] = [];
  for (const each of ordered) {
    const last = joined.at(-1);
    if (last !== undefined && each.firstSequence <= last.lastSequence + 1) joined.splice(-1, 1, join(last, each));
    else joined.push(each);
  }
  while (joined.length > holesMax) {
    const [a, b, ...others] = joined;
    if (a === undefined || b === undefined) break;
    joined.splice(0, joined.length, join(a, b), ...others);
  }
  return joined;
}

function join(a: LogHole, b: LogHole): LogHole {
  return {
    firstSequence: a.firstSequence,
    lastSequence: Math.max(a.lastSequence, b.lastSequence),
    from: Math.min(a.from, b.from),
    to: Math.max(a.to, b.to),
  };
}

/** Sequence number of the last stored object of the range, including its tail. */
export function lastStored({ lastSequence, tail }: LogRange): number {
  return Math.max(lastSequence, tail?.lastSequence ?? 0);
}

/** True if the sequence number is in one of the range's holes. */
export function isInHole({ holes = [] }: LogRange, sequence: number): boolean {
  return holes.some(({ firstSequence, lastSequence }) => sequence >= firstSequence && sequence <= lastSequence);
}
