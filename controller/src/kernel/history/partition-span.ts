/** A stretch of time that is kept, and goes, as a whole. */
export interface Span {
  /** "2026_01" of a month, "2026_01_31" of a day, "2026_01_31_06" of a quarter of one: they sort as their times. */
  readonly suffix: string;
  /** Inclusive, UTC. */
  readonly from: string;
  /** Exclusive. */
  readonly to: string;
}

export type SpanKind = "month" | "day" | "quarterDay";

const dayMs = 86_400_000;

// biome-ignore format: a table, aligned so that it reads as one
const kinds: Record<SpanKind, { readonly begin: (time: number, offset: number) => number; readonly letters: number }> = {
  month:      { begin: monthBegin,               letters: 7 },
  day:        { begin: everyMs(dayMs),           letters: 10 },
  quarterDay: { begin: everyMs(dayMs / 4),       letters: 13 },
};

/** The span that a time (UTC) is in, or one `offset` spans later. */
export function spanOf(kind: SpanKind, time: number, offset = 0): Span {
  const { begin, letters } = kinds[kind];
  const text = (spans: number) => new Date(begin(time, spans)).toISOString();
  const from = text(offset);
  return { suffix: from.slice(0, letters).replaceAll(/[-T]/g, "_"), from, to: text(offset + 1) };
}

function monthBegin(time: number, offset: number): number {
  const date = new Date(time);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + offset, 1);
}

function everyMs(lengthMs: number): (time: number, offset: number) => number {
  return (time, offset) => (Math.floor(time / lengthMs) + offset) * lengthMs;
}
