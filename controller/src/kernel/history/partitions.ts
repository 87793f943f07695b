import type pg from "pg";

interface Table {
  readonly table: string;
  readonly span: SpanKind;
  /** Number of past spans that still receive rows. */
  readonly lateSpans: number;
  /** Retention: a span is dropped once all of it is older. */
  readonly retentionHours: number;
}

const dayHours = 24;

/**
 * Tables that are partitioned by time. Samples arrive until they are 24 hours old; the roll-up needs two more hours.
 */
// biome-ignore format: a table, aligned so that it reads as one
const tables: readonly Table[] = [
  { table: "event",                span: "month",      lateSpans: 0, retentionHours: 90 * dayHours },
  { table: "audit",                span: "month",      lateSpans: 0, retentionHours: 400 * dayHours },
  { table: "task_log",             span: "month",      lateSpans: 0, retentionHours: 30 * dayHours },
  { table: "webhook_attempt",      span: "month",      lateSpans: 0, retentionHours: 30 * dayHours },
  { table: "sample",               span: "quarterDay", lateSpans: 5, retentionHours: dayHours + 2 },
  { table: "sample_minute",        span: "day",        lateSpans: 2, retentionHours: 8 * dayHours },
  { table: "sample_five_minutes",  span: "day",        lateSpans: 2, retentionHours: 8 * dayHours },
  { table: "sample_hour",          span: "month",      lateSpans: 1, retentionHours: 400 * dayHours },
];

/** Offsets of the spans that are created ahead. */
const offsetsAhead = [0, 1, 2];
const hourMs = 3_600_000;

/** SQLSTATEs: the default partition has rows of the span; the span overlaps a partition of another time zone. */
const occupiedCodes = ["23514", "42P17"];

/**
 * Creates the partitions of the current span and the next two. Skips a span whose rows are in a default partition
 * because a clock was wrong. Resolves to the skipped names.
 */
export async function createPartitions(client: pg.ClientBase, now: number): Promise<string[]> {
  const skipped: string[] = [];
  for (const { table, span, lateSpans } of tables) {
    const offsets = [...Array.from({ length: lateSpans }, (_, index) => index - lateSpans), ...offsetsAhead];
    for (const { suffix, from, to } of offsets.map((offset) => spanOf(span, now, offset))) {
      const name = `${table}_${suffix}`;
      const { rows } = await client.query<{ there: boolean }>("select to_regclass($1) is not null as there", [name]);
      if (rows[0]?.there) continue;
      try {
        await client.query(`create table ${name} partition of ${table} for values from ('${from}') to ('${to}')`);
      } catch (error) {
        if (occupiedCodes.some((code) => isCode(error, code))) skipped.push(name);
        else if (!isCode(error, "42P07")) throw error;
      }
    }
  }
  return skipped;
}

/** Drops the partitions that are entirely older than their table's retention; resolves to their names. */
export async function dropOldPartitions(client: pg.ClientBase, now: number): Promise<string[]> {
  const dropped: string[] = [];
  for (const { table, span, retentionHours } of tables) {
    const oldest = `${table}_${spanOf(span, now - retentionHours * hourMs).suffix}`;
    const { rows } = await client.query<{ name: string }>(
      "select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass",
      [table],
    );
    for (const { name } of rows) {
      if (!/_\d{4}_\d{2}(_\d{2})*$/.test(name) || name >= oldest) continue;
      await client.query(`drop table ${name}`);
      dropped.push(name);
    }
  }
  return dropped;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

/** The time range of one partition. */
interface Span {
  /** "2026_01" for a month, "2026_01_31" for a day, "2026_01_31_06" for a quarter of a day; they sort by time. */
  readonly suffix: string;
  /** Inclusive, ISO 8601, UTC. */
  readonly from: string;
  /** Exclusive, ISO 8601, UTC. */
  readonly to: string;
}

type SpanKind = "month" | "day" | "quarterDay";

const dayMs = 86_400_000;

// biome-ignore format: a table, aligned so that it reads as one
const kinds: Record<SpanKind, { readonly begin: (time: number, offset: number) => number; readonly suffixLength: number }> = {
  month:      { begin: monthBegin,               suffixLength: 7 },
  day:        { begin: everyMs(dayMs),           suffixLength: 10 },
  quarterDay: { begin: everyMs(dayMs / 4),       suffixLength: 13 },
};

/** The span that contains a time (UTC), or the span `offset` spans later. */
export function spanOf(kind: SpanKind, time: number, offset = 0): Span {
  const { begin, suffixLength } = kinds[kind];
  const text = (spans: number) => new Date(begin(time, spans)).toISOString();
  const from = text(offset);
  return { suffix: from.slice(0, suffixLength).replaceAll(/[-T]/g, "_"), from, to: text(offset + 1) };
}

function monthBegin(time: number, offset: number): number {
  const date = new Date(time);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + offset, 1);
}

function everyMs(lengthMs: number): (time: number, offset: number) => number {
  return (time, offset) => (Math.floor(time / lengthMs) + offset) * lengthMs;
}
