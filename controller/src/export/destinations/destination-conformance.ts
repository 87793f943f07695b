import { createAddressPolicy } from "@holdfast/egress/address-policy.ts";
import { createEgressClient, type EgressClient } from "@holdfast/egress/egress-client.ts";
import { createResolveName } from "@holdfast/egress/resolve-name.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  entryKey,
  exportEntries,
  exportOrigins,
  exportSamples,
  readKey,
  sampleKey,
} from "@holdfast/testing/servers/export-items.ts";
import { exportReaders, type ReadItem } from "@holdfast/testing/servers/export-readers.ts";
import {
  type ExportArrival,
  type ExportReceiver,
  type ExportReply,
  startExportReceiver,
} from "@holdfast/testing/servers/export-receiver.ts";
import { newConfiguration } from "../configuration/changed-configuration.ts";
import { DeliveryFailed, deliverItems } from "../deliver-items.ts";
import { createExportSender, createProbe } from "../export-sender.ts";
import type { ExportItem } from "../export-item.ts";
import type { Configuration } from "../metrics-export.ts";
import type { Destination, Encoder, VendorUrls } from "./destination.ts";

/** Rounded to a second: some destinations store no fractions. */
const nowMs = Math.floor(Date.now() / 1_000) * 1_000;

/** Conformance suite of destinations. The server parses requests strictly and responds by script. */
export function destinationConformance(destination: Destination): void {
  const reader = exportReaders[destination.type];

  describe(destination.type, () => {
    let egress: EgressClient;
    let receiver: ExportReceiver;
    let configuration: Configuration;
    let vendors: VendorUrls;
    let taken: ReadItem[];

    beforeAll(() => {
      const own = { host: () => [], listeners: () => [], machineNetworks: () => [] };
      egress = createEgressClient({ policy: createAddressPolicy(["127.0.0.0/8"], own), resolve: createResolveName() });
    });
    afterAll(() => egress.close());
    beforeEach(async () => {
      taken = [];
      receiver = await startExportReceiver(take);
      vendors = { apm: receiver.url, cloud: receiver.url, logSaas: "" };
      const checked = newConfiguration(destination, reader.configuration(receiver.url));
      if (!checked.ok) throw new Error(JSON.stringify(checked.faults));
      configuration = checked.configuration;
    });
    afterEach(() => receiver.close());

    function take(arrival: ExportArrival): ExportReply {
      const items = reader.read(arrival);
      taken.push(...(items ?? []));
      return reader.acceptance(arrival);
    }

    /** Responds with these replies in order, then accepts everything. */
    function scripted(...replies: readonly ExportReply[]): void {
      const remaining = [...replies];
      receiver.reply((arrival) => remaining.shift() ?? take(arrival));
    }

    const target = () => ({ destination, configuration, organizationId: "o" });
    const send = () => createExportSender({ egress: { users: egress, operators: egress }, vendors });
    const limits = () => ({ deadlineMs: 10_000, signal: AbortSignal.timeout(60_000) });
    const waits: number[] = [];

    function deliver<I extends ExportItem>(items: readonly I[], encoder: Encoder<I>) {
      return deliverItems(items, {
        encoder,
        configuration,
        context: { nowMs, vendors },
        send: (request) => send()(request, target(), limits()),
        wait: async (ms) => {
          waits.push(ms);
        },
      });
    }

    const probe = () =>
      createProbe({ send: send(), vendors, clock: { now: () => nowMs, monotonicMs: () => 0 } })(
        target(),
        "both",
        limits().signal,
      );

    test("a probe sends no data and reports the response in our own text", async () => {
      expect(await probe()).toBeUndefined();
      expect(taken).toEqual([]);
      expect(receiver.arrivals.length).toBeGreaterThan(0);
      receiver.reply(() => ({ status: 403, body: `the key ${reader.secret} is wrong` }));
      expect(await probe()).toBe("HTTP 403: the destination refuses the credential");
      receiver.reply(() => ({ status: 302, headers: { location: "http://169.254.169.254/" } }));
      expect(await probe()).toContain("redirects are not followed");
    });

    const streams = [
      ...(destination.metrics === undefined
        ? []
        : [streamOf("metrics", destination.metrics, exportSamples, sampleKey)]),
      ...(destination.logs === undefined ? [] : [streamOf("logs", destination.logs, exportEntries, entryKey)]),
    ];

    describe.each(streams)("$name", ({ run }) => {
      test("every item arrives once, in order for each node", async () => {
        const { keys, delivered } = await run(deliver, 300);
        expect(delivered).toEqual({ taken: 600, refused: 0, tooOld: 0, detail: undefined });
        for (const origin of exportOrigins) {
          const of = (list: readonly string[]) => list.filter((key) => key.startsWith(origin.nodeId));
          expect(of(taken.map(readKey)).toSorted()).toEqual(of(keys).toSorted());
        }
        const series = Map.groupBy(taken, ({ nodeId, name, stream }) => `${nodeId} ${name} ${stream}`);
        for (const own of series.values()) {
          const times = own.map(({ timeMs }) => timeMs);
          expect(times).toEqual(times.toSorted((a, b) => a - b));
        }
      });

      test("nothing is dropped after 429 responses, a closed connection or a failure", async () => {
        scripted({ status: 429, headers: { "retry-after": "2" } }, "cut");
        const { keys } = await run(deliver, 10);
        expect(taken.map(readKey).toSorted()).toEqual(keys.toSorted());
        expect(waits).toContain(2_000);
        receiver.reply(() => ({ status: 503 }));
        await expect(run(deliver, 10)).rejects.toThrow("HTTP 503: the destination fails");
      });

      test.each([401, 403, 404])("%i stops, and drops nothing", async (status) => {
        receiver.reply(() => ({ status, body: reader.secret }));
        const failure = await run(deliver, 10).catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(DeliveryFailed);
        expect(String(failure)).toContain(`HTTP ${status}`);
        expect(String(failure)).not.toContain(reader.secret);
        expect(receiver.arrivals).toHaveLength(1);
      });

      test("only refused items are dropped", async () => {
        const first = await run(deliver, 20);
        const refused = new Set([first.keys[3], first.keys[17], first.keys[30]]);
        taken = [];
        receiver.reply((arrival) => {
          const isBad = (reader.read(arrival) ?? []).some((item) => refused.has(readKey(item)));
          return isBad ? { status: 400, body: "no" } : take(arrival);
        });
        const { keys, delivered } = await run(deliver, 20);
        expect(delivered).toMatchObject({
          taken: 37,
          refused: 3,
          detail: "HTTP 400: the destination refuses the data",
        });
        expect(taken.map(readKey).toSorted()).toEqual(keys.filter((key) => !refused.has(key)).toSorted());
      });

      test("a web page in place of a response is a failure, and drops nothing", async () => {
        const page = { status: 200, body: "\n<!DOCTYPE html><html><title>Sign in</title></html>" };
        receiver.reply(() => page);
        const failed = "HTTP 200: the address responds with a web page; check the URL";
        await expect(run(deliver, 10)).rejects.toThrow(failed);
        expect(receiver.arrivals).toHaveLength(1);
        expect(await probe()).toBe(failed);
      });

      test("requests that are too large are halved", async () => {
        receiver.reply((arrival) => ((reader.read(arrival) ?? []).length > 7 ? { status: 413 } : take(arrival)));
        const { keys, delivered } = await run(deliver, 20);
        expect(delivered).toMatchObject({ taken: 40, refused: 0 });
        expect(taken.map(readKey).toSorted()).toEqual(keys.toSorted());
      });

      test("a destination that refuses everything gets a bounded number of requests", async () => {
        receiver.reply(() => ({ status: 400 }));
        await expect(run(deliver, 300)).rejects.toMatchObject({ isTooMixed: true });
        expect(receiver.arrivals.length).toBeLessThanOrEqual(256);
      });

      test("a large response does not cause another attempt", async () => {
        const body = destination.type === "search_cluster" ? '{"errors":false}' : "x".repeat(2 << 20);
        receiver.reply((arrival) => {
          take(arrival);
          return { ...reader.acceptance(arrival), body };
        });
        const { delivered } = await run(deliver, 5);
        expect(delivered.taken).toBe(10);
      });
    });
  });
}

type Deliver = <I extends ExportItem>(items: readonly I[], encoder: Encoder<I>) => ReturnType<typeof deliverItems<I>>;

function streamOf<I extends ExportItem>(
  name: string,
  encoder: Encoder<I>,
  make: (count: number, nowMs: number) => I[],
  key: (item: I) => string,
) {
  return {
    name,
    async run(deliver: Deliver, count: number) {
      const items = make(count, nowMs);
      return { keys: items.map(key), delivered: await deliver(items, encoder) };
    },
  };
}
