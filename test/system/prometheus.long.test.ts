import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { metricCatalog } from "@holdfast/common/metric-catalog.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { metricsText } from "@holdfast/testing/api/metrics-text.ts";
import { parseExposition } from "@holdfast/testing/api/parse-exposition.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, expectStatus, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const manual = join(import.meta.dirname, "../../docs/operate/monitoring");

// The first run builds an image, which takes minutes on a busy machine.
describe("metrics of the platform and of services", { timeout: 600_000 }, () => {
  let image: TestImage | string;
  let platform: Platform;
  let orders: RunningService;
  let cache: RunningService;
  const directory = mkdtempSync(join(tmpdir(), "holdfast-prometheus-"));

  beforeAll(async () => {
    image = await testImage("metrics");
    chmodSync(directory, 0o755);
    platform = await startPlatform({ environment: { HOLDFAST_SAMPLE_INTERVAL_MS: "1000" } });
    const services = createServices(platform);
    [orders, cache] = await Promise.all([
      services.createRunning("orders"),
      services.createRunning("cache", { database_type: "valkey" }),
    ]);
    await waitUntil("both have reported", async () => {
      const text = await textAt("/metrics");
      return text.includes("holdfast_valkey_used_memory{") && text.includes("holdfast_pg_connections{");
    });
  }, 600_000);
  afterAll(async () => {
    await platform?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  const pathOf = ({ service }: RunningService, rest: string) => `/managed-services/${service.id}/${rest}`;
  const textAt = (path: string) => metricsText(platform, path);

  it("have other facts of a service as well: operations, backups and queues", async () => {
    expectStatus(await platform.rest.post(pathOf(cache, "backups"), {}), 202);
    expectStatus(await platform.rest.post(pathOf(orders, "queues"), { name: "mails" }), 201);
    const valueOf = async (at: RunningService, name: string, labels: Readonly<Record<string, string>>) => {
      const samples = parseExposition(await textAt(pathOf(at, "metrics/export")));
      const service = { service_id: at.service.id, service_name: at.service.name, db_type: at.service.database_type };
      const labelText = JSON.stringify({ ...service, ...labels });
      return samples.find((each) => each.name === `holdfast_${name}` && JSON.stringify(each.labels) === labelText)
        ?.value;
    };
    await waitUntil(
      "the backup is counted",
      async () => (await valueOf(cache, "backups", { state: "completed" })) === 1,
    );
    await waitUntil("so is the queue", async () => (await valueOf(orders, "queues", { state: "Active" })) === 1);
    const ofSnapshots = (name: string) => valueOf(cache, `backup_last_${name}`, { kind: "snapshot" });
    expect(await ofSnapshots("size_bytes")).toBeGreaterThan(0);
    expect(await ofSnapshots("duration_seconds")).toBeGreaterThanOrEqual(0);
    expect(Math.abs(((await ofSnapshots("finish_time_seconds")) ?? 0) - Date.now() / 1_000)).toBeLessThan(600);
    const created = { type: "create", result: "completed" };
    expect(await valueOf(orders, "operations", created)).toBe(1);
    expect(await valueOf(orders, "operation_last_duration_seconds", created)).toBeGreaterThan(0);
  });

  it("pass Prometheus' own linter", async (context) => {
    if (typeof image === "string") return context.skip(image);
    const { admin } = platform;
    const platformMetrics = await metricsText(platform, "/metrics/platform", {
      name: admin.username,
      secret: admin.password,
    });
    const exports = {
      own: platformMetrics,
      all: await textAt("/metrics"),
      one: await textAt(pathOf(orders, "metrics/export")),
    };
    for (const [name, text] of Object.entries(exports)) {
      const file = join(directory, `${name}.prom`);
      writeFileSync(file, text);
      await image.run(["sh", "-c", `promtool check metrics < ${file}`], [directory]);
    }
  });

  it("are those of the rules and of the dashboard in the manual", async (context) => {
    const { admin } = platform;
    const operator = { name: admin.username, secret: admin.password };
    const texts = [await metricsText(platform, "/metrics/platform", operator), await textAt("/metrics")];
    const types = texts.join("\n").matchAll(/^# TYPE (\S+)/gm);
    // A metric without a value has no line, such as the lag of a service without replicas.
    const names = new Set(
      [...types].map(([, name]) => name).concat(metricCatalog.map(({ name }) => `holdfast_${name}`)),
    );
    for (const file of ["rules.yaml", "dashboard.json"]) {
      const used = readFileSync(join(manual, file), "utf8").match(/\bholdfast_\w+/g) ?? [];
      expect(used.length, file).toBeGreaterThan(5);
      expect(used.filter((name) => !names.has(name))).toEqual([]);
    }
    if (typeof image === "string") return context.skip(image);
    await image.run(["promtool", "check", "rules", join(manual, "rules.yaml")], [manual]);
  });

  it("are scraped by a real one", async (context) => {
    if (typeof image === "string") return context.skip(image);
    const [port = 0] = await freePorts(1);
    const { admin } = platform;
    const job = (path: string, username: string, password: string) => ({
      job_name: path,
      scheme: "https",
      metrics_path: path,
      basic_auth: { username, password },
      tls_config: { ca_file: join(directory, "ca.pem") },
      static_configs: [{ targets: [new URL(admin.base_url).host] }],
    });
    writeFileSync(join(directory, "ca.pem"), platform.ca);
    const scrape_configs = [
      job("/metrics", admin.api_key_id, admin.api_key_secret),
      job("/metrics/platform", admin.username, admin.password),
    ];
    writeFileSync(
      join(directory, "prometheus.yml"),
      JSON.stringify({ global: { scrape_interval: "1s" }, scrape_configs }),
    );
    const arguments_ = [
      `--config.file=${join(directory, "prometheus.yml")}`,
      "--storage.tsdb.path=/tmp/prometheus",
      `--web.listen-address=127.0.0.1:${port}`,
    ];
    const prometheus = await image.start(["prometheus", ...arguments_], [directory], /ready to receive web requests/);
    try {
      for (const query of ["holdfast_pg_connections", "holdfast_agent_sessions"])
        await waitUntil(`Prometheus has ${query}`, async () => {
          const response = await fetch(`http://127.0.0.1:${port}/api/v1/query?query=${query}`);
          const { data } = (await response.json()) as { data: { result: unknown[] } };
          return data.result.length > 0;
        });
    } finally {
      await prometheus.end("SIGKILL");
    }
  });
});
