import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../../instance.ts";
import { openSession } from "../session.ts";
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
const lookMs = 2_000;
/** More than this is thinned out: a long backup notes as many as a short one. */
const most = 4_096;

/** The statement's time is taken before it is executed, and the position while it is. A moment is of whole milliseconds. */
const look = `SELECT floor(extract(epoch FROM statement_timestamp()) * 1000)::text AS ms,
  pg_current_wal_insert_lsn()::text AS position`;

/** Begins with the moment of now. It takes a session of the platform until its end. A look that fails later costs precision alone. */
export async function noteMoments(instance: Instance, signal: AbortSignal): Promise<Moments> {
  const over = new AbortController();
  const session = await openSession(instance, { statementMs: lookMs }, signal);
  const end = () => {
    over.abort();
    session.abort();
  };
  signal.addEventListener("abort", end, { once: true });
  const now = async (): Promise<Moment> => {
    const [row] = await session.rows<{ ms: string; position: string }>(look);
    if (row === undefined) throw new Error("a SELECT without FROM gave no row");
    return { time: new Date(Number(row.ms)), position: row.position };
  };
  const first = await now().catch((error: unknown) => {
    end();
    throw error;
  });
  let noted: Moment[] = [];
  const noting = async (): Promise<void> => {
    while (session.broken === undefined) {
      await sleep(everyMs, undefined, { signal: over.signal });
      const moment = await now().catch(() => undefined);
      if (moment !== undefined) noted.push(moment);
      if (noted.length > most) noted = noted.filter((_, index) => index % 2 === 0);
    }
  };
  noting()
    .catch(() => undefined)
    .finally(() => session.close());

  return {
    before: (end) => noted.findLast(({ position }) => parsePosition(position) <= parsePosition(end)) ?? first,
    end,
  };
}
