import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { closestName } from "@holdfast/common/engine-catalog/closest-name.ts";
import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import { appliesToEngine, metricCatalog, metricOf } from "@holdfast/common/metric-catalog.ts";
import type { Metric } from "@holdfast/common/metrics/metric.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { type GetMetricsRequest, MetricService } from "@holdfast/proto/holdfast/v1/metric_pb.ts";
import { organizationOf } from "#access/caller.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { MonitoredMachine, MonitoredOwner } from "#fleet/owner/monitored-owner.ts";
import type { MonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import type { Samples } from "./samples/samples.ts";
import type { MetricPoint } from "./samples/sample-points.ts";
import { createSamplePages, machineRoleOf } from "./sample-pages.ts";
import { metricExposition } from "./metric-exposition.ts";
import type { ServiceGauges } from "#kernel/metrics/service-gauge.ts";
import type { ProcessMetrics } from "#kernel/metrics/process-metrics.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import { type MetricWindow, metricWindow } from "./metric-window.ts";

export interface MetricApiDeps {
  readonly storedSamples: Pick<Samples, "points" | "newest" | "recent">;
  readonly owners: MonitoredOwners;
  readonly fleet: Pick<Fleet, "observation">;
  readonly clock: Clock;
  readonly cursors: Cursors;
  /** Metrics of this process. */
  readonly metrics: Pick<ProcessMetrics, "text">;
  readonly serviceGauges: Pick<ServiceGauges, "list">;
}

/** Maximum age of a sample in the Prometheus text. */
const sampleAgeMaxMs = 60_000;

/** The RPCs of MetricService. Samples are read from the history. */
export function createMetricApi(deps: MetricApiDeps): ServedService {
  const { storedSamples, owners, fleet, clock } = deps;
  const samplePages = createSamplePages(deps);

  async function textOf(exported: readonly MonitoredOwner[]): Promise<string> {
    const machineIds = exported.flatMap(({ machines }) => machines.map(({ id }) => id));
    const figures = deps.serviceGauges.list();
    return metricExposition(exported, await storedSamples.newest(machineIds, clock.now() - sampleAgeMaxMs), figures);
  }

  const handlers: Handlers<typeof MetricService> = {
    async getMetrics(request, call) {
      const owner = owners.require(request.serviceId, call);
      const window = requireWindow(metricWindow(request, clock.now()));
      const metrics = metricsFor(request, owner);
      const nodes = machinesFor(request, owner);
      const { fromS, toS, resolutionS, resolution, period } = window;
      const points = await storedSamples.points({
        machineIds: nodes.map(({ id }) => id),
        metricNumbers: metrics.map(({ number }) => number),
        fromS,
        toS,
        resolutionS,
      });
      const bySeries = Map.groupBy(points, ({ machineId, metricNumber }) => seriesKey(machineId, metricNumber));
      const all = metrics.flatMap((metric) =>
        nodes.map((node) => ({
          metric,
          node,
          points: bySeries.get(seriesKey(node.id, metric.number)) ?? [],
          reason: absenceOf(metric, fleet.observation(node.id)?.instance.absentMetrics ?? {}),
        })),
      );
      return {
        ...(period !== undefined && { period }),
        resolution,
        series: all
          // Samples from before a metric became unavailable remain visible.
          .filter(({ reason, points: found }) => reason === undefined || found.length > 0)
          .map(({ metric, node, points: found }) => ({
            metric: metric.name,
            unit: metric.unit,
            nodeId: node.id,
            role: machineRoleOf(node),
            points: found.map(pointMessage),
          })),
        absent: all.flatMap(({ metric, node, reason }) =>
          reason === undefined ? [] : [{ metric: metric.name, nodeId: node.id, reason }],
        ),
      };
    },
    listMetricSamples: (request, call) => {
      const owner = owners.require(request.serviceId, call);
      return samplePages(request, owner, metricsFor(request, owner), call);
    },
    exportServiceMetrics: async ({ serviceId }, call) => ({
      text: await textOf([owners.require(serviceId, call)]),
    }),
    exportPlatformMetrics: async () => ({ text: await deps.metrics.text() }),
    exportMetrics: async (_request, call) => {
      const owned = owners.ofOrganization(organizationOf(call));
      return { text: await textOf(owned.filter(({ owner }) => owners.mayRead(owner, call))) };
    },
  };
  return serve(MetricService, handlers, {
    getMetrics: (request) => faultsOf(request, clock.now()),
    listMetricSamples: ({ metric }) => metric.flatMap(faultOfName),
  });
}

/** The errors of a request: unknown metric names and invalid time ranges. */
function faultsOf(request: GetMetricsRequest, now: number): readonly FieldFault[] {
  const window = metricWindow(request, now);
  return [...request.metric.flatMap(faultOfName), ...("fromS" in window ? [] : window)];
}

function faultOfName(name: string, index: number): FieldFault[] {
  if (metricOf(name) !== undefined) return [];
  const closest = closestName(
    name,
    metricCatalog.map((metric) => metric.name),
  );
  const hint = closest === undefined ? "GET /catalog lists all metrics" : `did you mean ${closest}?`;
  return [
    { field: `metric[${index}]`, pointer: null, code: "unknown_metric", detail: `${name} is not a metric: ${hint}` },
  ];
}

/** Throws INVALID_REQUEST: the clock has moved since validation, so the range can have become invalid. */
function requireWindow(window: MetricWindow | readonly FieldFault[]): MetricWindow {
  if ("fromS" in window) return window;
  throw new HoldfastError("INVALID_REQUEST", window.map(({ detail }) => detail).join("; "), { errors: window });
}

/** The requested metrics without duplicates. Throws NOT_SUPPORTED if one belongs to other engines. */
function metricsFor(request: Pick<GetMetricsRequest, "metric">, { noun, software }: MonitoredOwner): Metric[] {
  const metrics = [...new Set(request.metric)].flatMap((name) => metricOf(name) ?? []);
  const unsupported = metrics.find((metric) => !appliesToEngine(metric, software));
  if (unsupported === undefined) return metrics;
  const detail = `${unsupported.name} is a metric of ${unsupported.engines.join(", ")}; this ${noun} is ${software}.`;
  throw new HoldfastError("NOT_SUPPORTED", detail);
}

/** The requested machines, by default all. Throws OBJECT_NOT_FOUND for a machine that the owner does not have. */
function machinesFor({ nodeId }: GetMetricsRequest, { noun, machines }: MonitoredOwner): readonly MonitoredMachine[] {
  const unknown = nodeId.find((id) => !machines.some((machine) => machine.id === id));
  if (unknown !== undefined) throw new HoldfastError("OBJECT_NOT_FOUND", `The ${noun} has no node ${unknown}.`);
  return nodeId.length === 0 ? machines : machines.filter(({ id }) => nodeId.includes(id));
}

/** The reason why a node has no values of a metric; undefined if it can have values. */
function absenceOf({ name, source }: Metric, absentMetrics: Readonly<Record<string, string>>): string | undefined {
  return source === null ? "This version does not collect it." : lookUp(absentMetrics, name);
}

function seriesKey(machineId: string, metricNumber: number): string {
  return `${machineId} ${metricNumber}`;
}

function pointMessage({ timeS, average, minimum, maximum }: MetricPoint) {
  return {
    values: [timeS, average, minimum, maximum].map((value) => ({
      kind: { case: "numberValue" as const, value },
    })),
  };
}
