import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
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
  readonly backlog_seconds: number;
  readonly dropped: Readonly<Record<string, number>>;
}

const path = "/api/v1/metrics-exports";
const minuteMs = 60_000;
const outageMs = 10 * minuteMs;

describe("an export by the command line, to a Prometheus that is down for ten minutes", () => {
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

  it(
    "has no hole, and reports its failure and its end",
    async (context) => {
      if (typeof prometheus === "string") return context.skip(prometheus);
      const real = prometheus;
      const cli = createCommandLine({ HOLDFAST_DATA: platform.directory });
      const line = `exports create --to prometheus_remote_write --set url=${real.url}/api/v1/write --service first --interval 30`;
      const created = await cli.runHere([...line.split(" "), "--output", "json"]);
      expect(created).toMatchObject({ code: 0 });
      const { id, created_at: createdAt } = JSON.parse(created.stdout) as ExportJson;
      const query = `platform_cpu{service_id="${serviceId}"}`;
      const get = async () => expectStatus(await platform.rest.get<ExportJson>(`${path}/${id}`), 200).json;
      await waitUntil("the series exists within a minute", () => real.newest(query), { withinMs: minuteMs });

      await real.stop();
      const stoppedAt = Date.now();
      const after = await waitUntil(
        "ten minutes are over",
        async () => {
          const json = await get();
          return Date.now() - stoppedAt >= outageMs && json;
        },
        { withinMs: outageMs + minuteMs, everyMs: 5_000 },
      );
      expect(after).toMatchObject({ last_export_error: "The connection was refused." });
      expect(after.consecutive_failures).toBeGreaterThanOrEqual(10);
      expect(after.backlog_seconds).toBeGreaterThanOrEqual(outageMs / 1_000);
      await real.start();

      // A failing integration is probed every five minutes.
      const caughtUp = await waitUntil(
        "it recovered",
        async () => {
          const json = await get();
          return json.consecutive_failures === 0 && json.backlog_seconds === 0 && json;
        },
        { withinMs: 6 * minuteMs, everyMs: 2_000 },
      );
      // oxlint-disable-next-line holdfast/names -- members of the API
      expect(caughtUp.dropped).toEqual({ too_old: 0, refused: 0, gone: 0, gone_log_segments: 0 });
      const received = valuesOfSeries(await real.series(`{service_id="${serviceId}"}`, 30));
      const stored = await storedSamples(platform, serviceId, Date.parse(createdAt));
      const cpu = received.filter(({ name }) => name === "cpu");
      expect(cpu.filter(({ timeMs }) => timeMs > stoppedAt && timeMs < stoppedAt + outageMs).length).toBeGreaterThan(
        30,
      );
      expect(cpu.at(-1)?.timeMs).toBeGreaterThan(stoppedAt + outageMs);
      expect(holesIn(received, stored)).toEqual([]);
    },
    22 * minuteMs,
  );
});
