import type { LogHole, LogRange } from "../archive/archive.ts";

/** Holes of one range; beyond, the oldest ones are joined. */
const holesMax = 100;

/**
 * The parts of the ranges that can be replayed. A range with holes is several ranges here, each after a hole with
 * a beginning of its own; one without holes is itself.
 */
export function withoutHoles(log: readonly LogRange[]): readonly LogRange[] {
  return log.flatMap((range) => (range.holes === undefined ? [range] : partsOf(range, range.holes)));
}

function partsOf(range: LogRange, holes: readonly LogHole[]): LogRange[] {
  const parts: LogRange[] = [];
  const { holes: _, ...whole } = range;
  let rest: LogRange = whole;
  for (const hole of holes) {
    if (hole.lastSequence < rest.firstSequence) continue;
    const { tail, ...untailed } = rest;
    if (hole.firstSequence > rest.lastSequence) {
      rest = tail === undefined || hole.firstSequence > tail.lastSequence ? rest : untailed;
      continue;
    }
    if (hole.firstSequence > rest.firstSequence)
      parts.push({ ...untailed, lastSequence: hole.firstSequence - 1, toTime: Math.min(rest.toTime, hole.from) });
    const { continues: __, ...begun } = rest;
    rest = { ...begun, firstSequence: hole.lastSequence + 1, fromTime: hole.to };
  }
  return [...parts, rest];
}

/** The holes with another one, in order; those that touch are one. */
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

/** The last object of the range, with those of its tail. */
export function lastStored({ lastSequence, tail }: LogRange): number {
  return Math.max(lastSequence, tail?.lastSequence ?? 0);
}

/** True if the sequence number is in one of the range's holes. */
export function isInHole({ holes = [] }: LogRange, sequence: number): boolean {
  return holes.some(({ firstSequence, lastSequence }) => sequence >= firstSequence && sequence <= lastSequence);
}
