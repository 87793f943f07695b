import { destinations } from "@holdfast/controller/export/destinations/destinations.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createExportDelivery, loopbackEgress } from "@holdfast/testing/servers/export-delivery.ts";
import { exportEntries, exportSamples } from "@holdfast/testing/servers/export-items.ts";
import { exportReaders } from "@holdfast/testing/servers/export-readers.ts";
import { startExportReceiver } from "@holdfast/testing/servers/export-receiver.ts";

const nowMs = Math.floor(Date.now() / 1_000) * 1_000;
const statuses = Array.from({ length: 400 }, (_, index) => 200 + index);
/** Statuses after which items are dropped, and counted. */
const dropping = new Set([400, 409, 413, 422]);

let egress: EgressClient;
beforeAll(() => {
  egress = loopbackEgress();
});
afterAll(() => egress.close());

test.each(Object.values(destinations))(
  "$type: items are dropped after a refusal alone, and every failure names its status",
  async (destination) => {
    const receiver = await startExportReceiver(() => ({ status: 204 }));
    onTestFinished(() => receiver.close());
    const { url } = receiver;
    for (const status of statuses) {
      receiver.reply(() => ({ status }));
      const delivery = createExportDelivery(destination, exportReaders[destination.type].configuration(url), {
        egress,
        vendors: { apm: url, cloud: url },
      });
      const sent =
        destination.metrics === undefined
          ? delivery.entries(exportEntries(2, nowMs))
          : delivery.samples(exportSamples(2, nowMs));
      const outcome = await sent.catch((error: unknown) => error);
      if (outcome instanceof Error) {
        expect([status, outcome.name]).toEqual([status, "DeliveryFailed"]);
        // A bulk response without items is a failure too.
        if (status >= 300) expect(outcome.message).toContain(`HTTP ${status}: `);
        else expect(destination.type).toBe("search_cluster");
      } else {
        const { taken, refused, tooOld } = outcome as { taken: number; refused: number; tooOld: number };
        expect([status, taken + refused + tooOld]).toEqual([status, 4]);
        expect([status, taken]).toEqual([status, dropping.has(status) ? 0 : 4]);
        if (taken === 4) expect(status).toBeLessThan(300);
      }
      const requests = receiver.arrivals.length;
      expect(requests).toBeLessThan(20 * (statuses.indexOf(status) + 1));
    }
  },
  120_000,
);
