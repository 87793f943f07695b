import type { OpenedSource } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { platform, program } from "../layout.ts";
import { programEnvironment, walsenderClient } from "../platform-client.ts";
import { withSession } from "../session.ts";
import { type CommitPoints, recordCommitPoints } from "./commit-points.ts";

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
