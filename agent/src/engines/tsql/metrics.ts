import type { Instance } from "../engine-driver.ts";
import type { EngineMetrics, MetricsFacet } from "../insight-facets.ts";
import { frontEndListeners } from "./front.ts";
import { readUsage } from "./usage.ts";

const names = ["tds_connections", "tds_batches_per_second", "tds_errors_per_second", "tds_cache_hit_rate"];

/** PostgreSQL's metrics, and those of the front end, which may restart alone. */
export function createMetrics(postgresql: MetricsFacet): MetricsFacet {
  return {
    async read(instance, signal) {
      const [engine, frontEnd] = await Promise.all([postgresql.read(instance, signal), readFrontEnd(instance, signal)]);
      return {
        gauges: { ...engine.gauges, ...frontEnd.gauges },
        counters: { ...engine.counters, ...frontEnd.counters },
        ratios: { ...engine.ratios, ...frontEnd.ratios },
        epoch: `${engine.epoch} ${frontEnd.epoch}`,
        absent: { ...engine.absent, ...frontEnd.absent },
      };
    },
  };
}

async function readFrontEnd(instance: Instance, signal: AbortSignal): Promise<EngineMetrics> {
  if (frontEndListeners(instance).length === 0) return absentFor("The instance has no clients of T-SQL.");
  try {
    const { sessions, batches, errors, cacheHits, cacheLookups, sinceMs } = await readUsage(instance, signal);
    return {
      gauges: { tds_connections: sessions },
      counters: { tds_batches_per_second: batches, tds_errors_per_second: errors },
      ratios: { tds_cache_hit_rate: { part: cacheHits, total: cacheLookups } },
      epoch: String(sinceMs),
      absent: {},
    };
  } catch {
    signal.throwIfAborted();
    return absentFor("The T-SQL front end does not respond.");
  }
}

function absentFor(reason: string): EngineMetrics {
  const absent = Object.fromEntries(names.map((name) => [name, reason]));
  return { gauges: {}, counters: {}, ratios: {}, epoch: "", absent };
}
