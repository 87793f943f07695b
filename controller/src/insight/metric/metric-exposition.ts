import { appliesToEngine, metricCatalog } from "@holdfast/common/metric-catalog.ts";
import { Gauge, Registry } from "prom-client";
import type { MonitoredOwner } from "#fleet/owner/monitored-owner.ts";
import type { ServiceGauge } from "#kernel/metrics/service-gauge.ts";
import type { NewestSample } from "./samples/samples.ts";

const serviceLabels = ["service_id", "service_name", "db_type"] as const;
const labelNames = [...serviceLabels, "node_id", "role"] as const;

/**
 * The Prometheus text of the newest samples of these owners' machines, and of the gauges that systems contribute for
 * the owners. Metrics without a value are omitted.
 */
export function metricExposition(
  owners: readonly MonitoredOwner[],
  samples: readonly NewestSample[],
  figures: readonly ServiceGauge[],
): Promise<string> {
  const registry = new Registry();
  for (const figure of figures) addFigure(registry, figure, owners);
  const byMachine = new Map(samples.map(({ machineId, values }) => [machineId, values]));
  const gauges = new Map<number, Gauge<(typeof labelNames)[number]>>();
  for (const { owner, name: ownerName, software, machines } of owners) {
    const metrics = metricCatalog.filter((metric) => appliesToEngine(metric, software));
    for (const node of machines) {
      const labels = {
        service_id: owner.id,
        service_name: ownerName,
        db_type: software,
        node_id: node.id,
        role: node.role,
      };
      for (const { number, name, description, unit } of metrics) {
        const value = byMachine.get(node.id)?.get(number);
        if (value === undefined) continue;
        let gauge = gauges.get(number);
        if (gauge === undefined) {
          gauge = new Gauge({
            name: `holdfast_${name}`,
            help: `${description} (${unit})`,
            labelNames,
            registers: [registry],
          });
          gauges.set(number, gauge);
        }
        gauge.set(labels, value);
      }
    }
  }
  return registry.metrics();
}

function addFigure(
  registry: Registry,
  { name, help, labels, read }: ServiceGauge,
  owners: readonly MonitoredOwner[],
): void {
  const values = owners.flatMap(({ owner, name: ownerName, software }) =>
    Array.from(read(owner.id), ({ labels: own, value }) => ({
      labels: { service_id: owner.id, service_name: ownerName, db_type: software, ...own },
      value,
    })),
  );
  if (values.length === 0) return;
  const all = [...serviceLabels, ...labels];
  const gauge = new Gauge({ name: `holdfast_${name}`, help, labelNames: all, registers: [registry] });
  for (const each of values) gauge.set(each.labels, each.value);
}
