import { engineCatalog } from "./engine-catalog/engine-catalog.ts";
import { backupMetrics } from "./metrics/backup-metrics.ts";
import { machineMetrics } from "./metrics/machine-metrics.ts";
import type { Metric } from "./metrics/metric.ts";
import { queueMetrics } from "./metrics/queue-metrics.ts";

/** Metrics of all groups, ordered by their numbers. */
export const metricCatalog: readonly Metric[] = gatherMetrics({
  machineMetrics: machineMetrics.map(withEngines),
  ...Object.fromEntries(engineCatalog.map(({ engine, metrics = [] }) => [`${engine}Metrics`, metrics])),
  queueMetrics,
  backupMetrics,
});

/**
 * A metric that engines measure with the engines that have it, since a hosted app has none of them. Files services have
 * no replicas.
 */
function withEngines(metric: Metric): Metric {
  if (metric.source !== "engine" || metric.engines.length > 0) return metric;
  const having = engineCatalog.filter(({ family }) => metric.nodes !== "replicas" || family === undefined);
  return { ...metric, engines: having.map(({ engine }) => engine) };
}

/** Throws when two metrics have one number or one name, with the names of both tables. */
export function gatherMetrics(tables: Readonly<Record<string, readonly Metric[]>>): readonly Metric[] {
  const owners = new Map<string, string>();
  for (const [table, metrics] of Object.entries(tables)) {
    for (const key of metrics.flatMap(({ number, name }) => [`number ${number}`, name])) {
      const owner = owners.get(key);
      if (owner !== undefined) throw new Error(`${owner} and ${table} both have ${key}`);
      owners.set(key, table);
    }
  }
  return Object.values(tables)
    .flat()
    .toSorted((a, b) => a.number - b.number);
}

const byName = new Map(metricCatalog.map((metric) => [metric.name, metric]));

/** The metric of this name; undefined if the catalog lacks it. */
export function metricOf(name: string): Metric | undefined {
  return byName.get(name);
}

/** True if owners of this software, an engine or `app`, can have the metric. */
export function appliesToEngine({ engines }: Metric, engine: string): boolean {
  return engines.length === 0 || engines.includes(engine);
}
