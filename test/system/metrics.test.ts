import { readFileSync } from "node:fs";
import { join } from "node:path";
import { metricCatalog } from "@holdfast/common/metric-catalog.ts";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface MetricsJson {
  readonly period: string | null;
  readonly resolution: string;
  readonly series: readonly {
    readonly metric: string;
    readonly unit: string;
    readonly node_id: string;
    readonly role: string;
    readonly points: readonly (readonly [number, number, number, number])[];
  }[];
  readonly absent: readonly { readonly metric: string; readonly node_id: string; readonly reason: string }[];
}

describe("the metrics of services", () => {
  let platform: Platform;
  let services: Services;
  let orders: RunningService;
  let cache: RunningService;

  beforeAll(async () => {
    platform = await startPlatform({ environment: { HOLDFAST_SAMPLE_INTERVAL_MS: "1000" } });
    services = createServices(platform);
    [orders, cache] = await Promise.all([
      services.createRunning("orders"),
      services.createRunning("cache", { database_type: "valkey" }),
    ]);
  });
  afterAll(() => platform?.remove());

  async function metricsOf({ service }: RunningService, query: string): Promise<MetricsJson> {
    const path = `/managed-services/${service.id}/metrics?${query}`;
    return expectStatus(await platform.rest.get<MetricsJson>(path), 200).json;
  }

  async function refused({ service }: RunningService, query: string, status: number): Promise<ProblemJson> {
    const path = `/managed-services/${service.id}/metrics?${query}`;
    return expectStatus(await platform.rest.get<ProblemJson>(path), status).json;
  }

  it("come from each machine soon after its start, for every engine", async () => {
    for (const [running, own] of [
      [orders, "metric=pg_transactions_per_second"],
      [cache, "metric=valkey_keyspace_hits"],
    ] as const) {
      const metrics = "metric=disk_iops&metric=disk&metric=memory&metric=network_in&metric=replication_lag_seconds";
      const response = await waitUntil("both have rates", async () => {
        const nodeMetrics = await metricsOf(running, `${metrics}&${own}&period=15m`);
        const rates = nodeMetrics.series.filter(
          ({ metric }) => metric === "disk_iops" || metric === own.slice("metric=".length),
        );
        return rates.length === 2 && rates.every(({ points }) => points.length > 0) ? nodeMetrics : undefined;
      });
      expect(response).toMatchObject({ period: "15m", resolution: "1m" });
      const [node] = running.service.nodes;
      const disk = response.series.find(({ metric }) => metric === "disk");
      expect(disk).toMatchObject({ unit: "percent", node_id: node?.id, role: "primary" });
      const [time = 0, average = 0, minimum = 0, maximum = 0] = disk?.points.at(-1) ?? [];
      expect(time % 60).toBe(0);
      expect([minimum > 0, minimum <= average, average <= maximum, maximum < 100]).toEqual([true, true, true, true]);
      // Its machine shares the host's network, and a primary has no lag.
      expect(response.series.map(({ metric }) => metric)).not.toContain("network_in");
      const absent = Object.fromEntries(response.absent.map(({ metric, reason }) => [metric, reason]));
      expect(absent["network_in"]).toMatch(/shares its host's network/);
      expect(absent["replication_lag_seconds"]).toMatch(/is the primary/);
    }
  });

  it("have names that the catalog lists, and others are rejected with a suggestion", async () => {
    const { metrics } = (await platform.rest.get<{ metrics: { name: string; source: string | null }[] }>("/catalog"))
      .json;
    expect(metrics.map(({ name }) => name)).toEqual(metricCatalog.map(({ name }) => name));
    const unknown = await refused(orders, "metric=cpus&metric=zzzzzzzz&period=7d&resolution=1m", 400);
    expect(unknown.errors.map(({ field, pointer }) => [field, pointer])).toEqual([
      ["metric[0]", null],
      ["metric[1]", null],
      ["resolution", null],
    ]);
    expect(unknown.detail).toMatch(/did you mean cpu\?.*GET \/catalog.*allowed is 5m, 1h/);
    expect((await refused(orders, "period=1h", 400)).errors[0]?.field).toBe("metric");
    expect((await refused(orders, "metric=cpu&period=2h", 400)).errors[0]?.field).toBe("period");
    expect((await refused(orders, "metric=valkey_used_memory", 422)).code).toBe("not_supported");
    expect((await refused(orders, `metric=cpu&node_id=${cache.service.nodes[0]?.id}`, 404)).code).toBe(
      "object_not_found",
    );
  });

  it("include a query's use of the disk and the processor", async () => {
    const before = Date.now();
    const client = await openPostgresql(platform, orders.connection, { password: orders.password });
    await client.query(
      "CREATE TABLE filled AS SELECT repeat(md5(i::text), 8) AS line FROM generate_series(1, 200000) AS i",
    );
    await client.end();
    const start = new Date(before - 5_000).toISOString();
    const query = `metric=cpu&metric=disk_iops&metric=disk&start=${start}`;
    const span = ({ series }: MetricsJson, name: string) => {
      const points = series.find(({ metric }) => metric === name)?.points ?? [];
      return [
        Math.min(...points.map(([, , least]) => least)),
        Math.max(0, ...points.map(([, , , most]) => most)),
      ] as const;
    };
    // A sample in the middle of the query has a part of it.
    const response = await waitUntil("the figures of disk and processor have moved", async () => {
      const nodeMetrics = await metricsOf(orders, query);
      const [low, high] = span(nodeMetrics, "disk");
      // Where the host has no control groups for machines, cpu is absent.
      const cpuIsThere = !nodeMetrics.absent.some(({ metric }) => metric === "cpu");
      const moved =
        high > low + 2 && span(nodeMetrics, "disk_iops")[1] > 1 && (!cpuIsThere || span(nodeMetrics, "cpu")[1] > 1);
      return moved ? nodeMetrics : undefined;
    });
    expect(response.period).toBeNull();
  });

  it("are drawn by the command line, with the reason for absent ones", async () => {
    const shell = createCommandLine({ HOLDFAST_DATA: platform.directory });
    try {
      const drawn = await shell.runHere(["metrics", "orders", "--period", "15m"]);
      expect(drawn).toMatchObject({ code: 0, stderr: "" });
      expect(drawn.stdout).toMatch(/^disk: [\d.]+% \([\d.]+% to [\d.]+%\)\n( {2,}[▁-█ ]*\n){3} +.*[▁-█]\n/m);
      expect(drawn.stdout).toMatch(/^network_in: The machine shares its host's network/m);
      const printed = await shell.runHere(["metrics", "cache", "--metric", "disk", "--output", "json"]);
      expect(JSON.parse(printed.stdout)).toMatchObject({ period: "1h", series: [{ metric: "disk", unit: "percent" }] });
      expect((await shell.runHere(["metrics", "orders", "--metric", "dsk"])).stderr).toMatch(/did you mean disk\?/);
    } finally {
      shell.remove();
    }
  });

  it("lose nothing while the control plane is down", async () => {
    const node = orders.service.nodes[0]?.id ?? "";
    const spool = join(platform.directory, "machines", node, "state", "samples");
    const bufferedSamples = () =>
      readFileSync(spool, "utf8")
        .trim()
        .split("\n")
        .map((line) => Number(JSON.parse(line.slice(9)).t));
    await platform.killControlPlane();
    const away = Date.now();
    // The last line may be half written, so only complete lines are parsed.
    const waiting = await waitUntil("samples wait on the machine", () => {
      const times = bufferedSamples();
      return times.filter((time) => time > away).length > 3 && times;
    });
    await platform.start();
    const { ports } = JSON.parse(readFileSync(join(platform.directory, "installation.json"), "utf8"));
    const password = readFileSync(join(platform.directory, "keys", "history-password"), "utf8").trim();
    const target = { host: "127.0.0.1", port: ports.history, user: "holdfast", database: "holdfast" };
    const storedSamples = async () => {
      const history = new Client({ ...target, password, ssl: { rejectUnauthorized: false } });
      try {
        await history.connect();
        const sql = "SELECT extract(epoch FROM time) * 1000 AS time FROM sample WHERE machine_id = $1";
        const { rows } = await history.query<{ time: string }>(sql, [node]);
        return new Set(rows.map(({ time }) => Number(time)));
      } finally {
        await history.end();
      }
    };
    const missing = await waitUntil("they are in the history", async () => {
      const times = await storedSamples();
      return times.has(waiting.at(-1) ?? 0) ? waiting.filter((time) => !times.has(time)) : undefined;
    });
    expect(missing).toEqual([]);
  });
});
