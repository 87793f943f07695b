import { destinations } from "@holdfast/controller/export/destinations/destinations.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createExportDelivery, type ExportDelivery, loopbackEgress } from "../support/servers/export-delivery.ts";
import { entryKey, exportEntries, readKey } from "../support/servers/export-items.ts";
import { type Loki, type LokiEntry, startLoki } from "../support/servers/loki.ts";

const nowMs = Math.floor(Date.now() / 1_000) * 1_000;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

describe("Loki", () => {
  let egress: EgressClient;
  let started: Loki | string;

  beforeAll(async () => {
    egress = loopbackEgress();
    started = await startLoki();
  }, 1_800_000);
  afterAll(async () => {
    await egress?.close();
    if (typeof started === "object") await started.remove();
  });

  const statusesOf = ({ answers }: ExportDelivery) => [...new Set(answers.map(({ status }) => status))];
  const keyOf = ({ nanos, line }: LokiEntry) => {
    const { message = "", node_id: nodeId = "" } = JSON.parse(line) as Record<string, string>;
    return readKey({ name: "log", value: message, timeMs: Number(nanos.slice(0, -6)), nodeId });
  };

  test("has every entry of a push once, even when sent twice, in streams by service and level", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const { url } = started;
    const delivery = createExportDelivery(
      destinations.log_aggregator,
      { endpoint: url, labels: { team: "core" } },
      { egress },
    );
    expect(await delivery.probe()).toBeUndefined();
    const items = exportEntries(500, nowMs);
    expect(await delivery.entries(items)).toMatchObject({ taken: 1_000, refused: 0 });
    expect(await delivery.entries(items)).toMatchObject({ taken: 1_000, refused: 0 });
    // The first one has no data.
    expect(statusesOf(delivery)).toEqual([422, 204]);
    const entries = await started.entries('{team="core"}', nowMs - hourMs);
    expect(entries.map(keyOf).toSorted()).toEqual(items.map(entryKey).toSorted());
    expect(new Set(entries.map(({ labels }) => `${labels["service_id"]} ${labels["level"]}`)).size).toBe(8);
  });

  test("rejects entries of last month, which alone are dropped and reported as too old", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const delivery = createExportDelivery(
      destinations.log_aggregator,
      { endpoint: started.url, labels: { team: "old" } },
      { egress },
    );
    const fresh = exportEntries(20, nowMs);
    const old = exportEntries(2, nowMs - 30 * dayMs);
    const delivered = await delivery.entries([...old, ...fresh]);
    expect(delivered).toMatchObject({ tooOld: 4, taken: 40, refused: 0 });
    const refusal = delivery.answers.find(({ status }) => status === 400);
    expect(refusal?.body.toString()).toContain("timestamp too old");
    const entries = await started.entries('{team="old"}', nowMs - hourMs);
    expect(entries.map(keyOf).toSorted()).toEqual(fresh.map(entryKey).toSorted());
  });

  test("has every record of OTLP, by its resource", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const delivery = createExportDelivery(
      destinations.otlp,
      { endpoint: `${started.url}/otlp`, insecure: true },
      { egress },
    );
    const items = exportEntries(200, nowMs);
    expect(await delivery.probe("both")).toMatch(/^HTTP 404/);
    expect(await delivery.probe("logs")).toBeUndefined();
    expect(await delivery.entries(items)).toMatchObject({ taken: 400, refused: 0 });
    expect(statusesOf(delivery)).toEqual([404, 422, 204]);
    const entries = await started.entries('{service_name=~"a|b"} | platform_node_id != ""', nowMs - hourMs);
    const read = entries.map(({ labels, nanos, line }) =>
      readKey({
        name: "log",
        value: line,
        timeMs: Number(nanos.slice(0, -6)),
        nodeId: labels["platform_node_id"] ?? "",
      }),
    );
    expect(read.toSorted()).toEqual(items.map(entryKey).toSorted());
  });
});
