import { appliesToEngine, metricCatalog } from "@holdfast/common/metric-catalog.ts";
import { Gauge, Registry } from "prom-client";
import type { ServiceGauge } from "#kernel/metrics/service-gauge.ts";
import type { NewestSample } from "./samples/newest-samples.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { roleOf } from "#services/service/member/member-roles.ts";

const serviceLabels = ["service_id", "service_name", "db_type"] as const;
const labelNames = [...serviceLabels, "node_id", "role"] as const;

/**
 * Prometheus text of the newest samples of these services' nodes, and of the figures that systems have about the
 * services. Metrics without a value are left out.
 */
export function metricExposition(
  services: readonly ManagedServiceObject[],
  samples: readonly NewestSample[],
  figures: readonly ServiceGauge[],
): Promise<string> {
  const registry = new Registry();
  for (const figure of figures) addFigure(registry, figure, services);
  const byMachine = new Map(samples.map(({ machineId, values }) => [machineId, values]));
  const gauges = new Map<number, Gauge<(typeof labelNames)[number]>>();
  for (const service of services) {
    const { metadata, spec } = service;
    const metrics = metricCatalog.filter((metric) => appliesToEngine(metric, spec.databaseType));
    for (const node of spec.nodes) {
      const labels = {
        service_id: metadata.id,
        service_name: metadata.name,
        db_type: spec.databaseType,
        node_id: node.id,
        role: roleOf(service, node),
      };
      for (const { slot, name, description, unit } of metrics) {
        const value = byMachine.get(node.id)?.get(slot);
        if (value === undefined) continue;
        let gauge = gauges.get(slot);
        if (gauge === undefined) {
          gauge = new Gauge({
            name: `holdfast_${name}`,
            help: `${description} (${unit})`,
            labelNames,
            registers: [registry],
          });
          gauges.set(slot, gauge);
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
  services: readonly ManagedServiceObject[],
): void {
  const values = services.flatMap(({ metadata, spec }) =>
    Array.from(read(metadata.id), ({ labels: own, value }) => ({
      labels: { service_id: metadata.id, service_name: metadata.name, db_type: spec.databaseType, ...own },
      value,
    })),
  );
  if (values.length === 0) return;
  const all = [...serviceLabels, ...labels];
  const gauge = new Gauge({ name: `holdfast_${name}`, help, labelNames: all, registers: [registry] });
  for (const each of values) gauge.set(each.labels, each.value);
}
