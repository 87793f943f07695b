import { metricCatalog } from "../../common/src/metric-catalog.ts";
import type { Metric } from "../../common/src/metrics/metric.ts";
import { link, type Pages, table } from "./pages.ts";

/** Pages of metrics: the common ones, those of each engine, and an index. */
export function metricsPages(): Pages {
  const engines = [...new Set(metricCatalog.flatMap((metric) => metric.engines))].toSorted();
  const groups = [
    { name: "every-engine", metrics: metricCatalog.filter((metric) => metric.engines.length === 0) },
    ...engines.map((name) => ({ name, metrics: metricCatalog.filter((metric) => metric.engines.includes(name)) })),
  ];
  const index = [
    ...introduction,
    "## All metrics",
    "",
    ...table(
      ["engine", "metrics"],
      groups.map(({ name, metrics }) => [
        link(name, `metrics/${name}.md`),
        metrics.map((metric) => `\`${metric.name}\``).join(", "),
      ]),
    ),
    "",
  ];
  const pages = groups.map(({ name, metrics }) => [`metrics/${name}.md`, metricsPage(name, metrics)] as const);
  return new Map([["metrics.md", index.join("\n")], ...pages]);
}

function metricsPage(engine: string, metrics: readonly Metric[]): string {
  const rows = metrics.map(({ name, unit, kind, source, description, nodes }) => [
    `\`${name}\``,
    unit,
    kind,
    `${source ?? "not collected yet"}${nodes === undefined ? "" : ` (${nodes})`}`,
    description,
  ]);
  return [
    `# Metrics: ${engine}`,
    "",
    "How metrics are sampled, stored and queried: [metrics](../metrics.md).",
    "",
    ...table(["metric", "unit", "kind", "source", "meaning"], rows),
    "",
  ].join("\n");
}

const introduction = [
  "# Metrics",
  "",
  "Each machine takes a sample every 15 s, at the same times as all others, and spools it until the history has it, so a day without a",
  "controller, or a restart, loses none. A rate is the increase since the previous sample divided by the time between them; the first",
  "sample after a start has none. Raw samples are stored for 24 hours, minutes and five minutes for 8 days, hours for 400 days.",
  "",
  "```",
  "GET /managed-services/{id}/metrics?metric=cpu&metric=disk&period=6h&resolution=5m",
  "```",
  "",
  "returns one series for each metric and node, with points `[unix_seconds, average, minimum, maximum]`. A time without samples has no",
  "point: gaps are never zeros. The last point may still be in progress. `period` is 15m, 1h, 6h, 24h or 7d; `start` and `end` select",
  "other times. `resolution` 1m allows up to 24 hours and 5m up to 7 days, both within the last 8 days; 1h is always allowed. Metrics that",
  "a machine cannot measure are in `absent` with the reason; a metric of another engine is 422, and an unknown name 400 with the nearest",
  "name. `holdfast metrics SERVICE` draws charts.",
  "",
  "`GET /managed-services/{id}/metrics/samples?metric=cpu` returns raw samples, `{time, node_id, role, values}`, of the last minute or",
  "since `since` (at most 24 hours). `next_cursor` continues after the page, and `follow=true` keeps the response open as server-sent",
  "events for live charts: each sample comes once, and late samples of a node that was disconnected come when they arrive.",
  "",
  "## Prometheus",
  "",
  "`GET /metrics` returns the newest sample of each node of the organization in the Prometheus text format, and",
  "`GET /managed-services/{id}/metrics/export` the samples of one service; none is older than 60 s. Both also have figures of each service:",
  "`holdfast_backups` by state, `holdfast_backup_last_finish_time_seconds`, `_size_bytes` and `_duration_seconds` by kind,",
  "`holdfast_operations` and `holdfast_operation_last_duration_seconds` by type and result (a failover is one), and `holdfast_queues` by",
  "state. Platform operators find a controller's own metrics under `GET /metrics/platform` (`platform:read`): durations of calls,",
  "reconciles, etcd and outgoing requests, queues, sessions, the outbox, the lag of samples, and",
  "`holdfast_primary_lease_requests_total`: primary lease requests by outcome (granted, late, refused). Each controller has separate counters.",
  "",
  "```yaml",
  "scrape_configs:",
  "  - job_name: holdfast",
  "    scheme: https",
  "    metrics_path: /metrics",
  "    basic_auth: { username: hfk_..., password_file: /etc/prometheus/holdfast-key }",
  "    tls_config: { ca_file: /etc/prometheus/holdfast-ca.pem }",
  "    static_configs: [{ targets: ['127.0.0.1:8443'] }]",
  "```",
  "",
  "## Sources of machine metrics",
  "",
  "- `cpu`: CPU time of the machine's control group, relative to the quota of its plan, or to the host's processors if there are fewer.",
  "- `memory`: memory of the control group without its inactive file cache, which the kernel can free immediately, relative to the plan's limit.",
  "- `disk`: the file system of the data disk. Where a host has no disk per machine, the files are counted relative to the requested size.",
  "- `disk_iops`: operations that the data disk's device completed, including write-back by the kernel. On a shared disk it is the count of",
  "  the control group (version 2); version 1 does not count write-back, so the metric is absent there.",
  "- `network_in`, `network_out`: the machine's own interface. Machines of the provider `process` share their host's network, whose counters",
  "  include all of them, so the metrics are absent there.",
  "- A virtual machine has a control group in its guest: `memory` is relative to the memory at the start of its first program,",
  "  which is a little less than the plan's.",
  "- A host without control groups for machines has neither `cpu` nor `memory`.",
  "",
  "## Sources of engine metrics",
  "",
  "The agent queries the engine with each sample, by one session and one statement (PostgreSQL), a few statements (MySQL) or one `INFO` (Valkey), with a deadline of 3 s.",
  "",
  "- Sessions of the platform, and its work in its own database, are excluded everywhere.",
  "- An engine that does not respond in time has no values: a gap, never a zero. The same holds for a rate whose counter was reset, by a",
  "  restart, a crash, `pg_stat_reset()`, or a created or dropped database.",
  "- `pg_cache_hit_rate` covers the blocks that were requested since the previous sample; without any it has no value.",
  "- A primary has no lag: both lag metrics are in `absent` there.",
  "- `health` comes from the agent, so it is reported also when the engine hangs. `GET /managed-services/{id}/health` lists its checks.",
  "",
];
