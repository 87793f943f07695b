import { destinations } from "@holdfast/controller/export/destinations/destinations.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createExportDelivery,
  type ExportDelivery,
  loopbackEgress,
} from "@holdfast/testing/servers/export-delivery.ts";
import { exportSamples } from "@holdfast/testing/servers/export-items.ts";
import { type Prometheus, startPrometheus } from "@holdfast/testing/servers/prometheus.ts";

const nowMs = Math.floor(Date.now() / 1_000) * 1_000;

describe("Prometheus", () => {
  let egress: EgressClient;
  let started: Prometheus | string;
  let delivery: ExportDelivery;

  beforeAll(async () => {
    egress = loopbackEgress();
    started = await startPrometheus();
    if (typeof started === "object")
      delivery = createExportDelivery(
        destinations.prometheus_remote_write,
        { url: `${started.url}/api/v1/write` },
        { egress },
      );
  });
  afterAll(async () => {
    await egress?.close();
    if (typeof started === "object") await started.remove();
  });

  test("has every sample in order, and rejects all but the newest of repeated ones, reported as too old", async (context) => {
    if (typeof started === "string") return context.skip(started);
    expect(await delivery.probe()).toBeUndefined();
    const items = exportSamples(60, nowMs);
    expect(await delivery.samples(items)).toMatchObject({ taken: 120, refused: 0, tooOld: 0 });
    expect(delivery.responses.map(({ status }) => status)).toEqual([204, 204]);
    // Simulates the death of a controller before it learned that they were accepted.
    expect(await delivery.samples(items)).toMatchObject({ taken: 4, refused: 0, tooOld: 116 });
    expect(new Set(delivery.responses.slice(2).map(({ status }) => status))).toEqual(new Set([204, 400]));
    for (const node of ["node-a", "node-b"]) {
      const [series] = await started.series(`platform_cpu{node_id="${node}"}`);
      const ofNode = items.filter(
        ({ metric, origin, timeMs }) => metric === "cpu" && origin.nodeId === node && timeMs <= Date.now(),
      );
      expect(series?.timestamps).toEqual(ofNode.map(({ timeMs }) => timeMs));
    }
  });

  test("rejects samples older than the newest, which are reported as too old and delay nothing", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const outdated = exportSamples(2, nowMs - 7_200_000);
    const fresh = exportSamples(2, nowMs + 600_000);
    const delivered = await delivery.samples([...outdated, ...fresh]);
    expect(delivered.taken + delivered.tooOld).toBe(8);
    expect(delivered).toMatchObject({ refused: 0, tooOld: 4 });
    expect(delivery.responses.find(({ status }) => status === 400)?.body.toString()).toMatch(/out of order/);
  });
});
