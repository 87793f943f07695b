import type { MetricSeries, Metrics } from "@holdfast/sdk/responses.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { Option } from "commander";
import type { MetricPeriod, MetricResolution } from "@holdfast/sdk/requests.ts";
import { drawChart, shortFigure, timeAxis } from "../chart.ts";
import type { CliCommand } from "../command.ts";
import type { Context } from "../context.ts";
import { omitUndefined, collect } from "../flag-values.ts";
import { monitoredOf } from "../lookup.ts";

export interface MetricFlags {
  readonly metric?: readonly string[];
  readonly period: MetricPeriod;
  readonly resolution?: MetricResolution;
  readonly node?: readonly string[];
  readonly watch?: boolean;
  readonly table?: boolean;
}

const periods = { "15m": 900, "1h": 3_600, "6h": 21_600, "24h": 86_400, "7d": 604_800 } as const;
const stepsS = { "1m": 60, "5m": 300, "1h": 3_600 } as const;
const pollIntervalMs = 5_000;
const height = 4;
const maxColumns = 120;
const noSamples = "There are no samples in this time. A new machine has its first ones within a minute.";

/** Adds the argument and the flags of charts. */
export function withMetricFlags(command: CliCommand): CliCommand {
  return command
    .argument("[metrics...]", "metrics; all by default")
    .addOption(new Option("--period <period>", "period up to now").choices(Object.keys(periods)).default("1h"))
    .addOption(new Option("--resolution <time>", "interval of one point").choices(Object.keys(stepsS)))
    .option("--node <id>", "only metrics of this node (repeatable)", collect)
    .option("--table", "print a row for each point instead of a chart")
    .option("--watch", "redraw every 5 seconds, until Ctrl-C");
}

export function addMetrics(metrics: CliCommand): void {
  withMetricFlags(metrics.argument("<service>"))
    .addOption(new Option("--metric <metric>", "a metric (repeatable)").argParser(collect).hideHelp())
    .example("metrics orders")
    .example("metrics orders cpu memory --period 24h --watch")
    .example("metrics orders disk_iops --output json")
    .does(async (context, name: string, named: readonly string[], flags: MetricFlags) => {
      const { id, database_type: engine } = await monitoredOf(context, name);
      await showMetrics(context, { id, engine }, [...named, ...(flags.metric ?? [])], flags);
    });
}

/** Shows the selected metrics of a service or an app; all of its engine if none is selected. */
export async function showMetrics(
  context: Context,
  { id, engine }: { readonly id: string; readonly engine: string },
  selected: readonly string[],
  flags: MetricFlags,
): Promise<void> {
  const metric = selected.length === 0 ? await collectedOf(context, engine) : selected;
  const { period, resolution, node } = flags;
  const query = { metric, period, ...omitUndefined({ resolution, node_id: node }) };
  const fetchMetrics = () => context.client.metrics.get(id, query, { signal: context.signal });
  for (;;) {
    const metrics = await fetchMetrics();
    if (flags.watch === true) context.output.clear();
    if (flags.table === true) showTable(context, metrics);
    else show(context, metrics, periods[period]);
    if (flags.watch !== true) return;
    await sleep(pollIntervalMs, undefined, { signal: context.signal });
  }
}

/** All metrics of the service's engine. */
async function collectedOf({ client }: Context, engine: string): Promise<string[]> {
  const { metrics } = await client.catalog();
  const available = metrics.filter(({ engines }) => engines.length === 0 || engines.includes(engine));
  return available.filter(({ source }) => source !== null).map(({ name }) => name);
}

function show({ output }: Context, metrics: Metrics, periodS: number): void {
  if (output.format !== "table") return output.show(metrics);
  const stepS = stepsS[metrics.resolution];
  const toS = (Math.floor(Date.now() / 1_000 / stepS) + 1) * stepS;
  const hasNodes = new Set(metrics.series.map(({ node_id: node }) => node)).size > 1;
  const width = Math.min(maxColumns, Math.max(20, (output.columns ?? 80) - 2), Math.round(periodS / stepS));
  const area = { fromS: toS - periodS, toS, width, height };
  for (const series of metrics.series) {
    output.info(headOf(series, hasNodes));
    if (series.points.length === 0) continue;
    for (const line of drawChart(series.points, topOf(series), area)) output.info(`  ${line.trimEnd()}`);
    output.info(`  ${timeAxis(area)}`);
  }
  for (const { metric, reason } of metrics.absent) output.info(`${metric}: ${reason}`);
  if (metrics.series.length + metrics.absent.length === 0) output.info(noSamples);
}

/** Shows the points of all series, a row each. */
function showTable({ output }: Context, metrics: Metrics): void {
  if (output.format !== "table") return output.show(metrics);
  const rows = metrics.series.flatMap(({ metric, unit, node_id: node, points }) =>
    points.map(([timeS, average, minimum, maximum]) => ({
      time: new Date(timeS * 1_000).toISOString(),
      metric,
      average: shortFigure(average, unit),
      minimum: shortFigure(minimum, unit),
      maximum: shortFigure(maximum, unit),
      node,
    })),
  );
  output.list(rows, ["time", "metric", "average", "minimum", "maximum", "node"]);
  for (const { metric, reason } of metrics.absent) output.info(`${metric}: ${reason}`);
  if (rows.length + metrics.absent.length === 0) output.info(noSamples);
}

function headOf({ metric, unit, points, node_id: node, role }: MetricSeries, hasNodes: boolean): string {
  const name = hasNodes ? `${metric} of ${role} ${node}` : metric;
  const last = points.at(-1);
  if (last === undefined) return `${name}: no samples in this time`;
  const lowest = Math.min(...points.map(([, , minimum]) => minimum));
  const highest = Math.max(...points.map(([, , , maximum]) => maximum));
  return `${name}: ${shortFigure(last[1], unit)} (${shortFigure(lowest, unit)} to ${shortFigure(highest, unit)})`;
}

/** The top of a chart: 100 for percentages, otherwise the highest average. */
function topOf({ unit, points }: MetricSeries): number {
  return unit === "percent" ? 100 : Math.max(0, ...points.map(([, average]) => average));
}
