import type { EngineMetrics, MetricsFacet } from "../insight-facets.ts";
import { parseInfo, type Session, withSession } from "./session.ts";
import { platform } from "./layout.ts";
import { silentSecondsOf } from "./replication/status.ts";

const disconnectedReason = "The replica is not connected to its primary.";
const primaryReason = "The node is the primary, which has no replication lag.";

/**
 * Metrics out of INFO. The epoch is the server's run id: counters live in memory only, and users may not reset them.
 */
export const metrics: MetricsFacet = { read: (instance, signal) => withSession(instance, signal, readMetrics) };

/** Reads INFO and the platform's sessions in one transaction, so that those sessions can be subtracted. */
async function readMetrics(session: Session): Promise<EngineMetrics> {
  const [, , , replies] = await Promise.all([
    session.call("MULTI"),
    session.call("INFO", "server", "clients", "memory", "stats", "replication"),
    session.call("CLIENT", "LIST", "USER", platform),
    session.call("EXEC"),
  ]);
  const [text, platformSessions] = (replies as readonly unknown[]).map(String);
  const info = parseInfo(text ?? "");
  const valueOf = (name: string): number => Number(info.get(name));
  const connections = valueOf("connected_clients") - countSessions(platformSessions ?? "");
  const lag = lagOf(info);
  return {
    gauges: {
      ...lag.gauges,
      connections,
      valkey_connected_clients: connections,
      valkey_used_memory: valueOf("used_memory"),
    },
    counters: {
      valkey_keyspace_hits: valueOf("keyspace_hits"),
      valkey_keyspace_misses: valueOf("keyspace_misses"),
      valkey_evicted_keys: valueOf("evicted_keys"),
    },
    ratios: {},
    epoch: info.get("run_id") ?? "",
    absent: lag.absent,
  };
}

/**
 * Number of clients in a reply to CLIENT LIST that `connected_clients` counts too. A session that takes a
 * snapshot is listed as a replica and not counted.
 */
function countSessions(list: string): number {
  return list.split("\n").filter((line) => line !== "" && !/ flags=\S*S/.test(line)).length;
}

/**
 * A connected replica that has replayed everything it received has lag 0, since its primary sends something each
 * second.
 */
function lagOf(info: ReadonlyMap<string, string>): Pick<EngineMetrics, "gauges" | "absent"> {
  if (info.get("role") !== "slave")
    return {
      gauges: {},
      absent: { replication_lag_seconds: primaryReason, replication_lag_bytes: primaryReason },
    };
  const bytes = Number(info.get("slave_read_repl_offset")) - Number(info.get("slave_repl_offset"));
  const isConnected = info.get("master_link_status") === "up";
  const seconds = isConnected && bytes === 0 ? 0 : silentSecondsOf(info);
  return {
    gauges: { replication_lag_seconds: seconds, ...(isConnected && { replication_lag_bytes: Math.max(0, bytes) }) },
    absent: isConnected ? {} : { replication_lag_bytes: disconnectedReason },
  };
}
