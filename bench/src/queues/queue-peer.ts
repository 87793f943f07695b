import type pg from "pg";

/** A job queue on PostgreSQL, as an application uses it. */
export interface QueuePeer {
  readonly name: string;
  /** Sends this many messages; resolves when they wait. */
  fill(count: number): Promise<void>;
  /**
   * Processes all waiting messages, sequentially or concurrently; resolves with their number when the last one is
   * finished.
   */
  drain(): Promise<number>;
  /** Number of messages that wait or are in flight. */
  left(): Promise<number>;
  close(): Promise<void>;
}

/** 180 bytes as JSON. */
export const payload = { order: 17, text: "x".repeat(160) };

export async function countOf(pool: pg.Pool, from: string): Promise<number> {
  const { rows } = await pool.query<{ n: string }>(`SELECT count(*) AS n FROM ${from}`);
  return Number(rows[0]?.n);
}

/** Sizes of the requests that send `count` messages. */
export function chunks(count: number): number[] {
  return Array.from({ length: Math.ceil(count / 1_000) }, (_, n) => Math.min(1_000, count - n * 1_000));
}
