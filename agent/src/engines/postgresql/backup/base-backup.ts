import { setTimeout as sleep } from "node:timers/promises";
import type { OpenedSource } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { platform, program } from "../layout.ts";
import { programEnvironment, walsenderClient } from "../platform-client.ts";
import { openSession, withSession } from "../session.ts";
import { parseLsn } from "./lsn.ts";

/** Name of the only stream: a tar of the data directory with the log that makes it consistent. */
export const baseStream = "base.tar";

/**
 * A base backup over the replication protocol. The server verifies the checksum of each page. The backup contains its
 * own log, so that it can be restored without the archive; a temporary slot retains that log until it was read.
 */
export async function openBaseBackup(
  { pipe }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<OpenedSource> {
  const slot = await reserveLog(instance, signal);
  let commitPoints: CommitPoints | undefined;
  const close = async () => {
    commitPoints?.stop();
    await slot.close();
  };
  try {
    const points = (commitPoints = await recordCommitPoints(instance, signal));
    const [row] = await withSession(instance, signal, (session) =>
      session.rows<{ bytes: string; version: string }>(
        "SELECT sum(pg_database_size(oid)) AS bytes, current_setting('server_version') AS version FROM pg_database",
      ),
    );
    const { paths, spec } = instance;
    const base = pipe(
      [
        program(instance, "pg_basebackup"),
        "--pgdata=-",
        "--format=tar",
        "--wal-method=fetch",
        "--checkpoint=fast",
        "--verbose",
        "--no-password",
        `--host=${paths.run}`,
        `--port=${spec.port}`,
        `--username=${platform}`,
        "--label=holdfast",
      ],
      { env: programEnvironment(), signal },
    );
    return {
      streams: [{ name: baseStream, bytes: base.output }],
      totalBytes: Number(row?.bytes ?? 0),
      async end() {
        const output = await base.ended;
        const start = /log start point: (\S+) on timeline (\d+)/.exec(output);
        const end = /log end point: (\S+)/.exec(output);
        if (start?.[1] === undefined || start[2] === undefined || end?.[1] === undefined) {
          throw new Error(`the base backup did not report its positions: ${output.slice(-500)}`);
        }
        return {
          version: row?.version.split(" ")[0] ?? "",
          dataTime: points.latestBefore(end[1]).time,
          positions: { branch: start[2], from: start[1], consistent: end[1] },
        };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Retains all log from now on, until it is closed or the connection ends. */
async function reserveLog(instance: Instance, signal: AbortSignal): Promise<{ close(): Promise<void> }> {
  signal.throwIfAborted();
  const client = walsenderClient(instance);
  // If the connection ends, the log may be removed before it is read; that read reports the error.
  client.on("error", () => undefined);
  await client.connect();
  await client.query(`CREATE_REPLICATION_SLOT "holdfast_backup_${process.pid}" TEMPORARY PHYSICAL RESERVE_WAL`);
  return { close: () => client.end().catch(() => undefined) };
}

/** Time and LSN, such as `0/3000060`: commits that were acknowledged before `time` have records before `position`. */
export interface CommitPoint {
  readonly time: Date;
  readonly position: string;
}

/** Commit points of a running engine, recorded during a backup. */
interface CommitPoints {
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
async function recordCommitPoints(instance: Instance, signal: AbortSignal): Promise<CommitPoints> {
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
