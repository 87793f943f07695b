import type { Instance } from "../engine-driver.ts";
import type { EngineMetrics, MetricsFacet } from "../insight-facets.ts";
import { engineStartOf } from "./sessions.ts";
import { platform } from "./layout.ts";
import { type Session, withSession } from "./session.ts";
import { readStatus } from "./replication/status.ts";
import { countSessions, readCounters } from "./variables.ts";

const withinMs = 3_000;
const bytesName = "replication_lag_bytes";
const bytesReason = "MySQL counts the transactions that a replica lacks, not their bytes.";
const primaryReason = "The node is the primary, which has no replication lag.";

/** Counters of the engine, without the platform's sessions. The epoch is the engine's start. */
export const metrics: MetricsFacet = {
  read: (instance, signal) => withSession(instance, signal, (session) => readMetrics(instance, session), { withinMs }),
};

async function readMetrics(instance: Instance, session: Session): Promise<EngineMetrics> {
  const status = await readCounters(session, [
    "Questions",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_reads",
    "Innodb_num_open_files",
    "Open_files",
  ]);
  const valueOf = (name: string) => status.get(name) ?? 0;
  const [own] = await session.rows<{ count: string }>(
    "SELECT VARIABLE_VALUE AS count FROM performance_schema.status_by_user WHERE user = ? AND VARIABLE_NAME = 'Questions'",
    [platform],
  );
  const requests = valueOf("Innodb_buffer_pool_read_requests");
  const { ino, mtimeMs } = await engineStartOf(instance);
  const lag = await readLag(session);
  return {
    gauges: {
      connections: await countSessions(session),
      mysql_open_files: valueOf("Open_files") + valueOf("Innodb_num_open_files"),
      ...lag.gauges,
    },
    counters: { mysql_queries_per_second: Math.max(valueOf("Questions") - Number(own?.count ?? 0), 0) },
    ratios: {
      mysql_innodb_buffer_pool_hit_rate: {
        part: Math.max(requests - valueOf("Innodb_buffer_pool_reads"), 0),
        total: requests,
      },
    },
    epoch: `${ino} ${mtimeMs}`,
    absent: lag.absent,
  };
}

/** Reads a replica's lag, which is 0 for one that has applied everything, even if the last commit is old. */
async function readLag(session: Session): Promise<Pick<EngineMetrics, "gauges" | "absent">> {
  const names = ["replication_lag_seconds", "mysql_replication_lag_seconds"];
  const { role, position, replayedPosition, replayAgeSeconds } = await readStatus(session);
  if (role === "primary")
    return { gauges: {}, absent: Object.fromEntries([...names, bytesName].map((name) => [name, primaryReason])) };
  const seconds = position === replayedPosition ? 0 : replayAgeSeconds;
  return { gauges: Object.fromEntries(names.map((name) => [name, seconds])), absent: { [bytesName]: bytesReason } };
}
