import { once } from "node:events";
import { connect } from "node:net";
import type { OpMsgStatus } from "@holdfast/opmsg/opmsg-server.ts";
import type { Instance } from "../engine-driver.ts";
import type { EngineMetrics, MetricsFacet } from "../insight-facets.ts";
import { statusSocket } from "./layout.ts";

const lagName = "mongodb_replication_lag_seconds";
const cacheName = "mongodb_wiredtiger_cache_used";
const cacheReason = "The data are in PostgreSQL, which has no cache of WiredTiger.";
const withinMs = 3_000;

/** Metrics of the front end's connections and commands, and PostgreSQL's lag, in the names of this engine. */
export function createMetrics(postgresql: MetricsFacet): MetricsFacet {
  return {
    async read(instance, signal): Promise<EngineMetrics> {
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
      const [engine, { connections, commands, since }] = await Promise.all([
        postgresql.read(instance, bounded),
        readStatus(instance, bounded),
      ]);
      const lag = engine.gauges["replication_lag_seconds"];
      const lagReason = engine.absent["replication_lag_seconds"];
      const shared = ["replication_lag_seconds", "replication_lag_bytes"];
      const only = <T>(values: Readonly<Record<string, T>>) =>
        Object.fromEntries(Object.entries(values).filter(([name]) => shared.includes(name)));
      return {
        gauges: {
          ...only(engine.gauges),
          connections,
          mongodb_connections: connections,
          ...(lag !== undefined && { [lagName]: lag }),
        },
        counters: { mongodb_ops_per_second: commands },
        ratios: {},
        epoch: since,
        absent: {
          ...only(engine.absent),
          ...(lagReason !== undefined && { [lagName]: lagReason }),
          [cacheName]: cacheReason,
        },
      };
    },
  };
}

async function readStatus(instance: Instance, signal: AbortSignal): Promise<OpMsgStatus> {
  signal.throwIfAborted();
  const socket = connect({ path: statusSocket(instance), signal });
  // The error also rejects the wait below; a late one has no other listener.
  socket.on("error", () => socket.destroy());
  try {
    let text = "";
    socket.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    await once(socket, "end", { signal });
    return JSON.parse(text) as OpMsgStatus;
  } finally {
    socket.destroy();
  }
}
