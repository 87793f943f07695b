import type pg from "pg";
import { type SpanKind, spanOf } from "./partition-span.ts";

interface Table {
  readonly table: string;
  readonly span: SpanKind;
  /** Number of earlier spans that still receive rows. */
  readonly back: number;
  /** A span is kept until all of it is so old. */
  readonly keepHours: number;
}

const dayHours = 24;

/** Samples are taken until they are 24 hours old; two hours more see them rolled up. */
// biome-ignore format: a table, aligned so that it reads as one
const tables: readonly Table[] = [
  { table: "event",                span: "month",      back: 0, keepHours: 90 * dayHours },
  { table: "audit",                span: "month",      back: 0, keepHours: 400 * dayHours },
  { table: "task_log",             span: "month",      back: 0, keepHours: 30 * dayHours },
  { table: "webhook_attempt",      span: "month",      back: 0, keepHours: 30 * dayHours },
  { table: "sample",               span: "quarterDay", back: 5, keepHours: dayHours + 2 },
  { table: "sample_minute",        span: "day",        back: 2, keepHours: 8 * dayHours },
  { table: "sample_five_minutes",  span: "day",        back: 2, keepHours: 8 * dayHours },
  { table: "sample_hour",          span: "month",      back: 1, keepHours: 400 * dayHours },
];

/** Spans from this one on that are made ahead. */
const ahead = [0, 1, 2];
const hourMs = 3_600_000;

/** Of a default partition that has rows of the span, and of a span that was made in another time zone. */
const taken = ["23514", "42P17"];

/**
 * Makes the partitions of this time and the next two. A span whose rows are in a default partition, because a clock was
 * wrong, stays there; resolves to these spans.
 */
export async function makePartitions(client: pg.ClientBase, now: number): Promise<string[]> {
  const skipped: string[] = [];
  for (const { table, span, back } of tables) {
    const offsets = [...Array.from({ length: back }, (_, index) => index - back), ...ahead];
    for (const { suffix, from, to } of offsets.map((offset) => spanOf(span, now, offset))) {
      const name = `${table}_${suffix}`;
      const { rows } = await client.query<{ there: boolean }>("select to_regclass($1) is not null as there", [name]);
      if (rows[0]?.there) continue;
      try {
        await client.query(`create table ${name} partition of ${table} for values from ('${from}') to ('${to}')`);
      } catch (error) {
        if (taken.some((code) => isCode(error, code))) skipped.push(name);
        else if (!isCode(error, "42P07")) throw error;
      }
    }
  }
  return skipped;
}

/** Drops the spans that are wholly older than their table keeps; resolves to their names. */
export async function dropOldPartitions(client: pg.ClientBase, now: number): Promise<string[]> {
  const dropped: string[] = [];
  for (const { table, span, keepHours } of tables) {
    const oldest = `${table}_${spanOf(span, now - keepHours * hourMs).suffix}`;
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
