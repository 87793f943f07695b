import { type Metric, metricCatalog } from "../common/src/metric-catalog.ts";

/** The page of the catalog of metrics. */
export function metricsPage(): string {
  const engines = [...new Set(metricCatalog.flatMap((metric) => metric.engines))];
  return [
    ...introduction,
    "## Metrics of every engine",
    "",
    ...table(metricCatalog.filter((metric) => metric.engines.length === 0)),
    ...engines.flatMap((engine) => [
      `## Metrics of ${engine}`,
      "",
      ...table(metricCatalog.filter((metric) => metric.engines.includes(engine))),
    ]),
  ].join("\n");
}

function table(metrics: readonly Metric[]): string[] {
  const rows = metrics.map(
    ({ name, unit, kind, source, meaning, nodes }) =>
      `| \`${name}\` | ${unit} | ${kind} | ${source ?? "not collected yet"}${nodes === undefined ? "" : ` (${nodes})`} | ${meaning} |`,
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
  "is in `absent` with the reason; a metric of another engine is 422, a name outside of the catalog 400 with the nearest name.",
  "`holdfast metrics SERVICE` draws them.",
  "",
  "`GET /managed-services/{id}/metrics/samples?metric=cpu` answers samples as they came, `{time, node_id, role, values}`, of the last minute or from",
  "`since` on (24 hours at most). `next_cursor` goes on where the page ended, and `follow=true` keeps the answer open as server-sent events, so that a",
  "chart is live: each sample comes once, and late ones of a node that was cut off come when they are there.",
  "",
  "## Prometheus",
  "",
  "`GET /metrics` answers the newest sample of each node of the organization as Prometheus reads it, `GET /managed-services/{id}/metrics/export` those of",
  "one service; none is older than 60 s. Both also tell what the platform knows of each service: `holdfast_backups` by state,",
  "`holdfast_backup_last_finish_time_seconds`, `_size_bytes` and `_duration_seconds` by kind, `holdfast_operations` and",
  "`holdfast_operation_last_duration_seconds` by type and result (a failover is one), and `holdfast_queues` by state. Platform operators find what a controller tells of itself under `GET /metrics/platform` (`platform:read`):",
  "times of calls, reconciles, etcd and requests to elsewhere, queues, sessions, the outbox, how far samples lag, and `holdfast_primary_lease_requests_total`: primary lease requests by outcome (granted, late, refused). Each controller has its own.",
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
  "## Where the engine's figures come from",
  "",
  "The agent asks the engine with each sample, through one session and by one statement (PostgreSQL) or one `INFO` (Valkey), and gives it 3 s.",
  "",
  "- Sessions of the platform, and what they do in its own database, are left out everywhere.",
  "- An engine that does not answer in time has no values: a gap, never a zero. So has a rate whose counter began anew, after a restart, a crash",
  "  or `pg_stat_reset()`, or because a database was made or dropped.",
  "- `pg_cache_hit_rate` is of the blocks that were asked for since the sample before; without any it has no value.",
  "- A primary follows nobody: both lag metrics are in `absent` there.",
  "- `health` comes from the agent, so that it is told when the engine hangs. Its checks are those of `GET /managed-services/{id}`.",
  "",
];
