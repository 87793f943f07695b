import { cloudRequest } from "@holdfast/controller/export/destinations/cloud-monitoring.ts";
import { destinations } from "@holdfast/controller/export/destinations/destinations.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CloudMonitoring, startCloudMonitoring } from "@holdfast/testing/servers/cloud-monitoring.ts";
import { createExportDelivery, loopbackEgress } from "@holdfast/testing/servers/export-delivery.ts";
import { entryKey, exportEntries, exportSamples, readKey, sampleKey } from "@holdfast/testing/servers/export-items.ts";

const nowMs = Math.floor(Date.now() / 1_000) * 1_000;
const key = { region: "eu-west-1", access_key_id: "AKIAIOSFODNN7EXAMPLE", secret_access_key: "s".repeat(40) };

describe("CloudWatch of moto", () => {
  let egress: EgressClient;
  let started: CloudMonitoring | string;

  beforeAll(async () => {
    egress = loopbackEgress();
    started = await startCloudMonitoring();
  }, 300_000);
  afterAll(async () => {
    await egress?.close();
    if (typeof started === "object") await started.remove();
  });

  async function send(url: string, service: "monitoring" | "logs", body: string, action?: string): Promise<string> {
    const call = { service, body, ...(action !== undefined && { action }) };
    const context = { nowMs: Date.now(), vendors: { apm: "", logSaas: "", cloud: url } };
    const { method, url: to, headers, body: signed = "" } = await cloudRequest(call, [], key, context);
    return (await fetch(to, { method, headers, body: String(signed) })).text();
  }

  test("is probed without data, and receives every sample with its dimensions", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const { url } = started;
    const delivery = createExportDelivery(destinations.cloud_monitoring, key, { egress, vendors: { cloud: url } });
    expect(await delivery.probe()).toBeUndefined();
    const items = exportSamples(100, nowMs);
    expect(await delivery.samples(items)).toMatchObject({ taken: 200, refused: 0 });
    expect(new Set(delivery.responses.map(({ status }) => status))).toEqual(new Set([200]));
    const listed = await send(url, "monitoring", "Action=ListMetrics&Version=2010-08-01&Namespace=Platform");
    for (const name of ["platform_cpu", "platform_memory", "ServiceID", "DBType", "NodeID", "ServiceName"])
      expect(listed).toContain(name);
    const window = {
      StartTime: new Date(nowMs - 3_600_000).toISOString(),
      EndTime: new Date(nowMs + 86_400_000).toISOString(),
    };
    const read: string[] = [];
    for (const name of ["a", "b"])
      for (const metric of ["cpu", "memory"]) {
        const dimensions = [
          ["DBType", "postgresql"],
          ["NodeID", `node-${name}`],
          ["ServiceID", `service-${name}`],
          ["ServiceName", name],
        ];
        const form = new URLSearchParams({
          Action: "GetMetricStatistics",
          Version: "2010-08-01",
          Namespace: "Platform",
          MetricName: `platform_${metric}`,
          Period: "1",
          "Statistics.member.1": "Sum",
          ...window,
        });
        dimensions.forEach(([of = "", value = ""], index) => {
          form.set(`Dimensions.member.${index + 1}.Name`, of);
          form.set(`Dimensions.member.${index + 1}.Value`, value);
        });
        const response = await send(url, "monitoring", form.toString());
        for (const [, point = ""] of response.matchAll(/<member>(.*?)<\/member>/gs)) {
          const timeMs = Date.parse(/<Timestamp>(.*?)<\/Timestamp>/.exec(point)?.[1] ?? "");
          const value = Number(/<Sum>(.*?)<\/Sum>/.exec(point)?.[1]);
          read.push(readKey({ name: metric, value, timeMs, nodeId: `node-${name}` }));
        }
      }
    expect(read.toSorted()).toEqual(items.map(sampleKey).toSorted());
  });

  test("has every log entry once the group and the stream of its day exist", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const { url } = started;
    const delivery = createExportDelivery(destinations.cloud_monitoring, key, { egress, vendors: { cloud: url } });
    const items = exportEntries(500, nowMs);
    expect(await delivery.entries(items)).toMatchObject({ taken: 1_000, refused: 0 });
    // Missing, then created: the first response requests it.
    expect(delivery.responses[0]?.status).toBe(400);
    expect(delivery.responses[0]?.body.toString()).toContain("ResourceNotFoundException");
    const read: string[] = [];
    const names = [...new Set(items.map(({ timeMs }) => `platform-${new Date(timeMs).toISOString().slice(0, 10)}`))];
    for (const logStreamName of names) {
      let nextToken: string | undefined;
      for (;;) {
        const body = JSON.stringify({ logGroupName: "/platform/logs", logStreamName, startFromHead: true, nextToken });
        const page = JSON.parse(await send(url, "logs", body, "GetLogEvents")) as {
          events: { timestamp: number; message: string }[];
          nextForwardToken: string;
        };
        for (const { timestamp, message } of page.events) {
          const { message: value, NodeID } = JSON.parse(message) as Record<string, string>;
          read.push(readKey({ name: "log", value: value ?? "", timeMs: timestamp, nodeId: NodeID ?? "" }));
        }
        if (page.events.length === 0 || page.nextForwardToken === nextToken) break;
        nextToken = page.nextForwardToken;
      }
    }
    expect(read.toSorted()).toEqual(items.map(entryKey).toSorted());
  });
});
