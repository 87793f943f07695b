import type { EngineFigures, MetricsFacet } from "../insight-facets.ts";
import { parseInfo } from "./info.ts";
import { platform } from "./layout.ts";
import { silentSecondsOf } from "./replication/status.ts";
import { type Session, withSession } from "./session.ts";

const isCutOff = "The replica is not connected to its primary.";
const primaryHasNoLag = "The node is the primary: it follows nobody.";

/** Figures of INFO. The epoch is the server's run: its counters are in memory only, and users may not reset them. */
export const metrics: MetricsFacet = { read: (instance, signal) => withSession(instance, signal, look) };

/** Sessions of the platform are counted at the same moment as all of them, so that they can be left out. */
async function look(session: Session): Promise<EngineFigures> {
  const [, , , told] = await Promise.all([
    session.call("MULTI"),
    session.call("INFO", "server", "clients", "memory", "stats", "replication"),
    session.call("CLIENT", "LIST", "USER", platform),
    session.call("EXEC"),
  ]);
  const [text, ours] = (told as readonly unknown[]).map(String);
  const info = parseInfo(text ?? "");
  const figure = (name: string): number => Number(info.get(name));
  const connections = figure("connected_clients") - sessionsIn(ours ?? "");
  const lag = lagOf(info);
  return {
    gauges: {
      ...lag.gauges,
      connections,
      valkey_connected_clients: connections,
      valkey_used_memory: figure("used_memory"),
    },
    counters: {
      valkey_keyspace_hits: figure("keyspace_hits"),
      valkey_keyspace_misses: figure("keyspace_misses"),
      valkey_evicted_keys: figure("evicted_keys"),
    },
    shares: {},
    epoch: info.get("run_id") ?? "",
    absent: lag.absent,
  };
}

/** Pure: those of an answer to CLIENT LIST that `connected_clients` counts. One that takes a snapshot is listed, as a replica, and not counted. */
function sessionsIn(list: string): number {
  return list.split("\n").filter((line) => line !== "" && !/ flags=\S*S/.test(line)).length;
}

/** Pure: a replica whose primary tells something each second lacks nothing that it knows of. */
function lagOf(info: ReadonlyMap<string, string>): Pick<EngineFigures, "gauges" | "absent"> {
  if (info.get("role") !== "slave")
    return {
      gauges: {},
      absent: { replication_lag_seconds: primaryHasNoLag, replication_lag_bytes: primaryHasNoLag },
    };
  const bytes = Number(info.get("slave_read_repl_offset")) - Number(info.get("slave_repl_offset"));
  const isConnected = info.get("master_link_status") === "up";
  const seconds = isConnected && bytes === 0 ? 0 : silentSecondsOf(info);
  return {
    gauges: { replication_lag_seconds: seconds, ...(isConnected && { replication_lag_bytes: Math.max(0, bytes) }) },
    absent: isConnected ? {} : { replication_lag_bytes: isCutOff },
  };
}
