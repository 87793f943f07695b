import type pg from "pg";

/** A job queue on PostgreSQL, as one who uses it would have it. */
export interface QueuePeer {
  readonly name: string;
  /** Sends so many messages; they wait when it resolves. */
  fill(count: number): Promise<void>;
  /** Works on all that waits, one after another or many at a time; resolves when the last one is done, with how many there were. */
  drain(): Promise<number>;
  /** How many wait or are at work. */
  left(): Promise<number>;
  close(): Promise<void>;
}

/** 180 bytes as JSON. */
export const payload = { order: 17, text: "x".repeat(160) };

export async function countOf(pool: pg.Pool, from: string): Promise<number> {
  const { rows } = await pool.query<{ n: string }>(`SELECT count(*) AS n FROM ${from}`);
  return Number(rows[0]?.n);
}

/** How many go in each of the requests that send `count`. */
export function chunks(count: number): number[] {
  return Array.from({ length: Math.ceil(count / 1_000) }, (_, n) => Math.min(1_000, count - n * 1_000));
}
