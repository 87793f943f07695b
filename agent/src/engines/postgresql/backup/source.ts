import type { OpenedSource } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { platform, program } from "../layout.ts";
import { programEnvironment, walsenderClient } from "../platform-client.ts";
import { withSession } from "../session.ts";
import { type Moments, noteMoments } from "./moments.ts";

/** Name of the one stream: a tar of the data directory with the log that makes it consistent. */
export const baseStream = "base.tar";

/**
 * A base backup by the replication protocol. The server checks each page on the way. Its own log is in it, so that it can be
 * restored without the archive; a temporary slot keeps that log until it was read.
 */
export async function openBase({ pipe }: EngineDeps, instance: Instance, signal: AbortSignal): Promise<OpenedSource> {
  const slot = await holdLog(instance, signal);
  let moments: Moments | undefined;
  const close = async () => {
    moments?.end();
    await slot.close();
  };
  try {
    const noted = (moments = await noteMoments(instance, signal));
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
        const words = await base.ended;
        const start = /log start point: (\S+) on timeline (\d+)/.exec(words);
        const end = /log end point: (\S+)/.exec(words);
        if (start?.[1] === undefined || start[2] === undefined || end?.[1] === undefined) {
          throw new Error(`the base backup did not tell its positions: ${words.slice(-500)}`);
        }
        return {
          version: row?.version.split(" ")[0] ?? "",
          dataTime: noted.before(end[1]).time,
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

/** Keeps all log from now on until it is closed, or the connection ends. */
async function holdLog(instance: Instance, signal: AbortSignal): Promise<{ close(): Promise<void> }> {
  signal.throwIfAborted();
  const client = walsenderClient(instance);
  // Without it the log may be gone when it is read: that fails then, and says so.
  client.on("error", () => undefined);
  await client.connect();
  await client.query(`CREATE_REPLICATION_SLOT "holdfast_backup_${process.pid}" TEMPORARY PHYSICAL RESERVE_WAL`);
  return { close: () => client.end().catch(() => undefined) };
}
