import { destinations } from "@holdfast/controller/export/destinations/destinations.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createExportDelivery, loopbackEgress } from "@holdfast/testing/servers/export-delivery.ts";
import { exportSamples, readKey, sampleKey } from "@holdfast/testing/servers/export-items.ts";
import { valuesOfSeries } from "@holdfast/testing/servers/stored-series.ts";
import { startVictoriaMetrics, type VictoriaMetrics } from "@holdfast/testing/servers/victoria-metrics.ts";

const nowMs = Math.floor(Date.now() / 1_000) * 1_000;
const { prometheus_remote_write: remoteWrite, apm_platform: apm } = destinations;

describe("VictoriaMetrics", () => {
  let egress: EgressClient;
  let started: VictoriaMetrics | string;

  beforeAll(async () => {
    egress = loopbackEgress();
    started = await startVictoriaMetrics();
  });
  afterAll(async () => {
    await egress?.close();
    if (typeof started === "object") await started.remove();
  });

  test("has every sample of remote write, with its labels, including those sent while it was down", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const real = started;
    const configuration = { url: `${real.url}/api/v1/write` };
    const delivery = createExportDelivery(remoteWrite, configuration, { egress });
    expect(await delivery.probe()).toBeUndefined();
    const items = exportSamples(300, nowMs);
    expect(await delivery.samples(items.slice(0, 300))).toMatchObject({ taken: 300, refused: 0 });
    await real.stop();
    await expect(delivery.samples(items.slice(300))).rejects.toThrow("The connection was refused.");
    await real.start();
    expect(await delivery.samples(items.slice(300))).toMatchObject({ taken: 300, refused: 0 });
    const series = await real.series('{__name__=~"platform_.*"}');
    expect(valuesOfSeries(series).map(readKey).toSorted()).toEqual(items.map(sampleKey).toSorted());
    expect(series.map(({ metric }) => Object.keys(metric).toSorted().join())).toEqual(
      Array.from({ length: 4 }, () => "__name__,db_type,node_id,service_id,service_name"),
    );
    expect(delivery.responses.map(({ status }) => status)).toEqual([204, 204, 204]);
  });

  test("has every point of the Datadog API, by host and tags", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const real = started;
    const configuration = { api_key: "k", tags: { team: "core" } };
    const vendors = { apm: `${real.url}/datadog` };
    const delivery = createExportDelivery(apm, configuration, { egress, vendors });
    expect(await delivery.probe()).toBeUndefined();
    const items = exportSamples(100, nowMs);
    expect(await delivery.samples(items)).toMatchObject({ taken: 200, refused: 0 });
    expect(delivery.responses.map(({ status }) => status)).toEqual([200, 202]);
    const series = await real.series('{team="core"}');
    expect(valuesOfSeries(series, "host").map(readKey).toSorted()).toEqual(items.map(sampleKey).toSorted());
    expect(series[0]?.metric).toMatchObject({ db_type: "postgresql", team: "core" });
  });

  test("accepts no OTLP as JSON, as the first test of the integration reports", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const configuration = { endpoint: `${started.url}/opentelemetry`, insecure: true };
    expect(await createExportDelivery(destinations.otlp, configuration, { egress }).probe()).toMatch(
      /^HTTP 400|^HTTP 415/,
    );
  });
});
