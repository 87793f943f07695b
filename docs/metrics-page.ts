import { type Metric, metricCatalogue } from "../common/src/metric-catalogue.ts";

/** The page of the catalogue of metrics. */
export function metricsPage(): string {
  const engines = [...new Set(metricCatalogue.flatMap((metric) => metric.engines))];
  return [
    ...introduction,
    "## Metrics of every engine",
    "",
    ...table(metricCatalogue.filter((metric) => metric.engines.length === 0)),
    ...engines.flatMap((engine) => [
      `## Metrics of ${engine}`,
      "",
      ...table(metricCatalogue.filter((metric) => metric.engines.includes(engine))),
    ]),
  ].join("\n");
}

function table(metrics: readonly Metric[]): string[] {
  const rows = metrics.map(
    ({ name, unit, kind, source, meaning }) =>
      `| \`${name}\` | ${unit} | ${kind} | ${source ?? "not collected yet"} | ${meaning} |`,
  );
  return ["| metric | unit | kind | told by | meaning |", "| --- | --- | --- | --- | --- |", ...rows, ""];
}

const introduction = [
  "# Metrics",
  "",
  "Each machine takes a sample every 15 s, at the same times as all others, and keeps it until the history has it: a day without a",
  "controller, or a restart, loses none. A rate is what came since the sample before by the time between them; the first sample after a",
  "start has none. Every sample is kept for 24 hours, minutes and five minutes for 8 days, hours for 400 days.",
  "",
  "```",
  "GET /managed-services/{id}/metrics?metric=cpu&metric=disk&period=6h&resolution=5m",
  "```",
  "",
  "answers one series for each metric and node, with points `[unix_seconds, average, minimum, maximum]`. A time without samples has no",
  "point: gaps are never zeros. The last point may still be in progress. `period` is 15m, 1h, 6h, 24h or 7d; `start` and `end` name other",
  "times. `resolution` 1m goes up to 24 hours and 5m up to 7 days, both within the last 8 days; 1h always goes. What a machine cannot tell",
  "is in `absent` with the reason; a metric of another engine is 422, a name outside of the catalogue 400 with the nearest name.",
  "`holdfast metrics SERVICE` draws them.",
  "",
  "## Where the machine's figures come from",
  "",
  "- `cpu`: CPU time of the machine's control group, by the quota of its plan, or by the host's processors where those are fewer.",
  "- `memory`: what the control group uses less its inactive file cache, which the kernel gives back at once, by the limit of the plan.",
  "- `disk`: the file system of the data disk. Where a host gives no disks of their own, the files are counted against what was asked for.",
  "- `disk_iops`: what the data disk's device completed, also what the kernel wrote back later. On a disk that is shared, the control group's",
  "  own count (version 2); version 1 does not count what is written back, so there is none.",
  "- `network_in`, `network_out`: the machine's own interface. Machines of the provider `process` share their host's network, which counts all",
  "  of them together and none alone: there is no such figure of one machine, so it is absent, and not the host's.",
  "- A virtual machine has a control group of its own in its guest: `memory` is by what was there when its first program started, a little less than the plan's.",
  "- A host without control groups for machines tells neither `cpu` nor `memory`.",
  "",
];
