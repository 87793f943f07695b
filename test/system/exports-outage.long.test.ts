import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";
import { storedSamples } from "@holdfast/testing/platform/stored-samples.ts";
import { holesIn } from "@holdfast/testing/servers/export-holes.ts";
import { type Prometheus, startPrometheus } from "@holdfast/testing/servers/prometheus.ts";
import { valuesOfSeries } from "@holdfast/testing/servers/stored-series.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface ExportJson {
  readonly id: string;
  readonly created_at: string;
  readonly consecutive_failures: number;
  readonly last_export_error: string | null;
}

const path = "/api/v1/metrics-exports";

describe("an export to a Prometheus that stops for a while", () => {
  let platform: Platform;
  let prometheus: Prometheus | string;
  let serviceId: string;

  beforeAll(async () => {
    platform = await startPlatform({ environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" } });
    prometheus = await startPrometheus();
    serviceId = (await createServices(platform).createRunning("first")).service.id;
  });
  afterAll(async () => {
    if (typeof prometheus === "object") await prometheus.remove();
    await platform?.remove();
  });

  it("has no hole afterwards, even when the controller was killed during the outage", async (context) => {
    if (typeof prometheus === "string") return context.skip(prometheus);
    const real = prometheus;
    const created = await platform.rest.post<ExportJson>(path, {
      service_id: serviceId,
      name: "grafana",
      destination_type: "prometheus_remote_write",
      data_type: "metrics",
      export_interval_seconds: 30,
      configuration: { url: `${real.url}/api/v1/write` },
    });
    const { id, created_at: createdAt } = expectStatus(created, 201).json;
    const query = `platform_cpu{service_id="${serviceId}"}`;
    await waitUntil("the series exists", () => real.newest(query));
    await real.stop();
    const failing = await waitUntil("the outage is reported", async () => {
      const { json } = expectStatus(await platform.rest.get<ExportJson>(`${path}/${id}`), 200);
      return json.consecutive_failures > 1 ? json : undefined;
    });
    expect(failing.last_export_error).toBe("The connection was refused.");
    for (const pid of platform.processes().controllers) killImmediately(pid);
    await real.start();
    const startedAt = Date.now();
    await waitUntil("it continues", async () => {
      const [series] = await real.series(query);
      return (series?.timestamps.at(-1) ?? 0) > startedAt;
    });
    const received = valuesOfSeries(await real.series(`{service_id="${serviceId}"}`));
    const stored = await storedSamples(platform, serviceId, Date.parse(createdAt));
    expect(new Set(stored.filter(({ timeMs }) => timeMs < startedAt).map(({ timeMs }) => timeMs)).size).toBeGreaterThan(
      4,
    );
    expect(holesIn(received, stored)).toEqual([]);
  });
});
