import { setTimeout as sleep } from "node:timers/promises";
import { parsePosition } from "./position.ts";

/** A commit that was acknowledged before the time has its record before the position. */
export interface Moment {
  readonly time: Date;
  readonly position: string;
}

/** Moments of a running engine, noted while it is read. */
export interface Moments {
  /** The newest one that data reach which are recovered up to this position. */
  before(position: string): Moment;
  end(): void;
}

const everyMs = 250;
/** More than this is thinned out: a long backup notes as many as a short one. */
const most = 4_096;

/** The statement's time is taken before it is executed, and the position while it is. */
const look = `SELECT (extract(epoch FROM statement_timestamp()) * 1000)::bigint::text AS ms, pg_current_wal_insert_lsn()::text AS position`;

/** Begins with the moment of now. A look that fails later costs precision alone. */
export async function noteMoments(query: (sql: string) => Promise<{ readonly rows: unknown[] }>): Promise<Moments> {
  const over = new AbortController();
  const now = async (): Promise<Moment> => {
    const [row] = (await query(look)).rows as { ms: string; position: string }[];
    if (row === undefined) throw new Error("a SELECT without FROM gave no row");
    return { time: new Date(Number(row.ms)), position: row.position };
  };
  const first = await now();
  let noted: Moment[] = [];
  const noting = async (): Promise<never> => {
    for (;;) {
      await sleep(everyMs, undefined, { signal: over.signal });
      noted.push(await now());
      if (noted.length > most) noted = noted.filter((_, index) => index % 2 === 0);
    }
  };
  noting().catch(() => undefined);

  return {
    before: (end) => noted.findLast(({ position }) => parsePosition(position) <= parsePosition(end)) ?? first,
    end: () => over.abort(),
  };
}
