import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../../instance.ts";
import { openSession } from "../session.ts";
import { parseLsn } from "./lsn.ts";

/** Time and LSN, such as `0/3000060`: commits that were acknowledged before `time` have records before `position`. */
export interface CommitPoint {
  readonly time: Date;
  readonly position: string;
}

/** Commit points of a running engine, recorded during a backup. */
export interface CommitPoints {
  /** Newest point that is contained in data recovered up to this position. */
  latestBefore(position: string): CommitPoint;
  stop(): void;
}

const intervalMs = 250;
const statementMs = 2_000;
/** Maximum number of points. Beyond it every second one is dropped, so that a long backup needs no more memory. */
const maxPoints = 4_096;

/** The statement's time is taken before its execution, the position during it. Truncated to milliseconds. */
const pointSql = `SELECT floor(extract(epoch FROM statement_timestamp()) * 1000)::text AS ms,
  pg_current_wal_insert_lsn()::text AS position`;

/**
 * Records the first point before it resolves. Uses one of the platform's sessions until it is stopped. A query that
 * fails later only reduces the precision.
 */
export async function recordCommitPoints(instance: Instance, signal: AbortSignal): Promise<CommitPoints> {
  const finished = new AbortController();
  const session = await openSession(instance, { statementMs }, signal);
  const stop = () => {
    finished.abort();
    session.abort();
  };
  signal.addEventListener("abort", stop, { once: true });
  const now = async (): Promise<CommitPoint> => {
    const [row] = await session.rows<{ ms: string; position: string }>(pointSql);
    if (row === undefined) throw new Error("a SELECT without FROM gave no row");
    return { time: new Date(Number(row.ms)), position: row.position };
  };
  const first = await now().catch((error: unknown) => {
    stop();
    throw error;
  });
  let points: CommitPoint[] = [];
  const recording = async (): Promise<void> => {
    while (session.broken === undefined) {
      await sleep(intervalMs, undefined, { signal: finished.signal });
      const point = await now().catch(() => undefined);
      if (point !== undefined) points.push(point);
      if (points.length > maxPoints) points = points.filter((_, index) => index % 2 === 0);
    }
  };
  recording()
    .catch(() => undefined)
    .finally(() => session.close());

  return {
    latestBefore: (end) => points.findLast(({ position }) => parseLsn(position) <= parseLsn(end)) ?? first,
    stop,
  };
}
