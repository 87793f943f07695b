import type { Instance } from "../engine-driver.ts";
import type { EngineMetrics, MetricsFacet } from "../insight-facets.ts";
import { startOf } from "./engine-start.ts";
import { platform } from "./layout.ts";
import { type Session, withSession } from "./session.ts";
import { countSessions, readStatus } from "./variables.ts";

const withinMs = 3_000;
const primaryReason = "The node is the primary, which has no replication lag.";

/** Counters of the engine without those of the platform's sessions. The epoch is the engine's start. */
export const metrics: MetricsFacet = {
  read: (instance, signal) => withSession(instance, signal, (session) => readMetrics(instance, session), { withinMs }),
};

async function readMetrics(instance: Instance, session: Session): Promise<EngineMetrics> {
  const status = await readStatus(session, [
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
  const { ino, mtimeMs } = await startOf(instance);
  const lag = ["replication_lag_seconds", "replication_lag_bytes", "mysql_replication_lag_seconds"];
  return {
    gauges: {
      connections: await countSessions(session),
      mysql_open_files: valueOf("Open_files") + valueOf("Innodb_num_open_files"),
    },
    counters: { mysql_queries_per_second: Math.max(valueOf("Questions") - Number(own?.count ?? 0), 0) },
    ratios: {
      mysql_innodb_buffer_pool_hit_rate: {
        part: Math.max(requests - valueOf("Innodb_buffer_pool_reads"), 0),
        total: requests,
      },
    },
    epoch: `${ino} ${mtimeMs}`,
    absent: Object.fromEntries(lag.map((name) => [name, primaryReason])),
  };
}
