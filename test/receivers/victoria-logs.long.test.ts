import { destinations } from "@holdfast/controller/export/destinations/destinations.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createExportDelivery,
  type ExportDelivery,
  loopbackEgress,
} from "@holdfast/testing/servers/export-delivery.ts";
import { entryKey, exportEntries, readKey } from "@holdfast/testing/servers/export-items.ts";
import { startVictoriaLogs, type VictoriaLogs } from "@holdfast/testing/servers/victoria-logs.ts";

const nowMs = Math.floor(Date.now() / 1_000) * 1_000;
const dayMs = 24 * 3_600_000;

describe("VictoriaLogs", () => {
  let egress: EgressClient;
  let started: VictoriaLogs | string;

  beforeAll(async () => {
    egress = loopbackEgress();
    started = await startVictoriaLogs();
  }, 1_800_000);
  afterAll(async () => {
    await egress?.close();
    if (typeof started === "object") await started.remove();
  });

  const statusesOf = ({ responses }: ExportDelivery) => [...new Set(responses.map(({ status }) => status))];
  const keyOf = ({ _time = "", message = "", node_id: nodeId = "" }: Readonly<Record<string, string>>) =>
    readKey({ name: "log", value: message, timeMs: Date.parse(_time), nodeId });

  test("has every entry of a push, in streams by service and level, for its tenant", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const configuration = { endpoint: `${started.url}/insert`, labels: { team: "core" }, headers: { AccountID: "7" } };
    const delivery = createExportDelivery(destinations.log_aggregator, configuration, { egress });
    expect(await delivery.probe()).toBeUndefined();
    const items = exportEntries(500, nowMs);
    expect(await delivery.entries(items)).toMatchObject({ taken: 1_000, refused: 0 });
    expect(statusesOf(delivery)).toEqual([204]);
    expect(await started.entries('team:"core"')).toEqual([]);
    const entries = await started.entries('team:"core"', { AccountID: "7" });
    expect(entries.map(keyOf).toSorted()).toEqual(items.map(entryKey).toSorted());
    expect(new Set(entries.map(({ _stream }) => _stream)).size).toBe(8);
  });

  test("has only the newer ones of entries that are before its retention", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const configuration = { endpoint: `${started.url}/insert`, labels: { team: "old" } };
    const delivery = createExportDelivery(destinations.log_aggregator, configuration, { egress });
    const fresh = exportEntries(20, nowMs);
    // VictoriaLogs accepts the request and omits entries that are too old.
    expect(await delivery.entries([...exportEntries(2, nowMs - 30 * dayMs), ...fresh])).toMatchObject({ taken: 44 });
    const entries = await started.entries('team:"old"');
    expect(entries.map(keyOf).toSorted()).toEqual(fresh.map(entryKey).toSorted());
  });

  test("has no web page for a push, so a wrong path is a failure", async (context) => {
    if (typeof started === "string") return context.skip(started);
    const delivery = createExportDelivery(destinations.log_aggregator, { endpoint: started.url }, { egress });
    expect(await delivery.probe()).toMatch(/^HTTP 4/);
  });
});
