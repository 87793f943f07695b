import { destinations } from "@holdfast/controller/export/destinations/destinations.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createExportDelivery, loopbackEgress } from "@holdfast/testing/servers/export-delivery.ts";
import { entryKey, exportEntries, exportSamples, readKey, sampleKey } from "@holdfast/testing/servers/export-items.ts";
import { type OpenSearch, startOpenSearch } from "@holdfast/testing/servers/opensearch.ts";

const nowMs = Math.floor(Date.now() / 1_000) * 1_000;

interface Hit {
  readonly _source: {
    readonly "@timestamp": string;
    readonly value?: number;
    readonly metric?: string;
    readonly message?: string;
    readonly tags: Readonly<Record<string, string>>;
  };
}

describe("OpenSearch with security", () => {
  let egress: EgressClient;
  let started: OpenSearch | string;

  beforeAll(async () => {
    egress = loopbackEgress();
    started = await startOpenSearch();
  }, 600_000);
  afterAll(async () => {
    await egress?.close();
    if (typeof started === "object") await started.remove();
  });

  const deliveryOf = ({ url, user }: OpenSearch, change: object = {}) =>
    createExportDelivery(
      destinations.search_cluster,
      { endpoint: url, ...user, tls_skip_verify: true, ...change },
      { egress },
    );

  const statusesOf = (body: Buffer) =>
    (JSON.parse(body.toString()) as { items: { create: { status: number } }[] }).items.map(
      ({ create }) => create.status,
    );

  async function read(real: OpenSearch, what: "metrics" | "logs"): Promise<string[]> {
    await real.send("POST", `/platform-platform-${what}/_refresh`);
    const { hits } = (await real.send("GET", `/platform-platform-${what}/_search?size=10000`)) as {
      hits: { hits: Hit[] };
    };
    return hits.hits.map(({ _source: { tags, metric = "platform_log", value, message, ...rest } }) =>
      readKey({
        name: metric.replace(/^platform_/, ""),
        value: value ?? message ?? "",
        timeMs: Date.parse(rest["@timestamp"]),
        nodeId: tags["node_id"] ?? "",
      }),
    );
  }

  test("stores each sample and each log entry once, however often it is sent", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const delivery = deliveryOf(started);
    expect(await delivery.probe()).toBeUndefined();
    const samples = exportSamples(300, nowMs);
    const entries = exportEntries(300, nowMs);
    // The first round creates the items, the second one finds them.
    for (const status of [201, 409]) {
      const delivered = await delivery
        .samples(samples)
        .catch(() => delivery.responses.at(-1)?.body.toString().slice(0, 2_000));
      expect(delivered).toMatchObject({ taken: 600, refused: 0 });
      expect(await delivery.entries(entries)).toMatchObject({ taken: 600, refused: 0 });
      const ofItems = delivery.responses.slice(-2).flatMap(({ body }) => statusesOf(body));
      expect([...new Set(ofItems)]).toEqual([status]);
    }
    expect(delivery.responses.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect((await read(started, "metrics")).toSorted()).toEqual(samples.map(sampleKey).toSorted());
    expect((await read(started, "logs")).toSorted()).toEqual(entries.map(entryKey).toSorted());
  });

  test("rejects items by its mapping, one by one", async (context) => {
    if (typeof started === "string") return context.skip(started);
    await started.send("PUT", "/narrow-platform-metrics", {
      mappings: { properties: { value: { type: "byte", coerce: true } } },
    });
    // The user may write to the usual indexes only: no item is dropped for that.
    const barred = deliveryOf(started, { index_prefix: "narrow" }).samples(exportSamples(2, nowMs));
    await expect(barred).rejects.toThrow("HTTP 403");
    const admin = deliveryOf(started, { index_prefix: "narrow", username: "admin" });
    const wide = exportSamples(2, nowMs).map((item) => ({
      ...item,
      value: item.metric === "memory" ? 1_000 : item.value,
    }));
    expect(await admin.samples(wide)).toMatchObject({ taken: 2, refused: 2, why: expect.stringContaining("HTTP 400") });
  });

  test("reports a wrong password and an untrusted certificate", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const wrong = deliveryOf(started, { password: "another" });
    expect(await wrong.probe()).toBe("HTTP 401: the destination does not accept the credential");
    await expect(wrong.samples(exportSamples(1, nowMs))).rejects.toThrow("HTTP 401");
    expect(await deliveryOf(started, { tls_skip_verify: false }).probe()).toMatch(/^The TLS handshake failed/);
  });
});
