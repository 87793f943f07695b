import { once } from "node:events";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createAddressPolicy } from "@holdfast/egress/address-policy.ts";
import { createEgressClient, type EgressClient } from "@holdfast/egress/egress-client.ts";
import { ssrfUrls } from "@holdfast/testing/ssrf-corpus.ts";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { hostileResponses, startHostileReceiver } from "@holdfast/testing/servers/hostile-receiver.ts";
import { createExportDelivery, loopbackEgress } from "@holdfast/testing/servers/export-delivery.ts";
import { exportEntries, exportSamples } from "@holdfast/testing/servers/export-items.ts";
import { exportReaders } from "@holdfast/testing/servers/export-readers.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { newConfiguration } from "../configuration/changed-configuration.ts";
import { checkTargets } from "../configuration/check-configuration.ts";
import { DeliveryFailed } from "../deliver-items.ts";
import { destinations } from "./destinations.ts";

const names = Object.keys(hostileResponses) as (keyof typeof hostileResponses)[];
const nowMs = Math.floor(Date.now() / 1_000) * 1_000;
/** Far above the deadline, for machines that are busy: many of these responses never end by themselves. */
const endMaxMs = 60_000;
/** Maximum for all connections of one destination: bytes read, and bytes in socket buffers. */
const responsesBytesMax = 128 << 20;

describe.concurrent.each(Object.values(destinations))("$type", (destination) => {
  let egress: EgressClient;

  beforeAll(() => {
    egress = loopbackEgress();
  });
  afterAll(() => egress.close());

  test.each(names)("survives %s", async (name) => {
    const receiver = await startHostileReceiver(name);
    const { url } = receiver;
    const delivery = createExportDelivery(destination, exportReaders[destination.type].configuration(url), {
      egress,
      vendors: { apm: url, cloud: url },
      deadlineMs: 200,
    });
    const started = performance.now();
    const ends = await Promise.allSettled([
      destination.metrics === undefined ? undefined : delivery.samples(exportSamples(3, nowMs)),
      destination.logs === undefined ? undefined : delivery.entries(exportEntries(3, nowMs)),
      delivery.probe(),
    ]);
    expect(performance.now() - started).toBeLessThan(endMaxMs);
    for (const end of ends) {
      if (end.status === "rejected") {
        expect(end.reason).toBeInstanceOf(DeliveryFailed);
        expect((end.reason as Error).message.length).toBeLessThan(120);
      } else if (typeof end.value === "object") {
        const { taken, refused, tooOld } = end.value;
        // Each of the six items counts as accepted or refused, even if the response claims another number.
        expect(taken + refused + tooOld).toBe(6);
        expect(Math.min(taken, refused, tooOld)).toBeGreaterThanOrEqual(0);
      }
    }
    expect(delivery.responses.every(({ body }) => body.length <= 1 << 20)).toBe(true);
    expect(receiver.sentBytes()).toBeLessThan(responsesBytesMax);
    expect(delivery.waits.every((ms) => ms <= 10_000)).toBe(true);
    // Endless responses are closed by the client, so no connection stays for a later request.
    if (/endless|without an end|for ever|by bytes|no answer/.test(name)) await until(() => receiver.open() === 0);
    await receiver.close();
  });
});

test("no URL of any destination reaches an internal address", async () => {
  const reached: Socket[] = [];
  const listener = createServer((socket) => void reached.push(socket.on("error", () => undefined).destroy()));
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  onTestFinished(() => void listener.close());
  const { port } = listener.address() as AddressInfo;
  const own = { host: () => [], listeners: () => [], machineNetworks: () => [] };
  const egress = createEgressClient({ policy: createAddressPolicy([], own), resolve: async () => ["127.0.0.1"] });
  onTestFinished(() => egress.close());
  const vendors = { apm: "", cloud: "", logSaas: "" };
  let tried = 0;
  for (const destination of Object.values(destinations)) {
    const key = Object.entries(destination.fields).find(([, { kind }]) => kind === "url")?.[0];
    if (key === undefined) continue;
    const usual = exportReaders[destination.type].configuration("https://a.test");
    await Promise.all(
      ssrfUrls.map(async (url) => {
        tried += 1;
        const given = { ...usual, [key]: url.replaceAll("PORT", String(port)) };
        const checked = newConfiguration(destination, given);
        if (!checked.ok) return expect(checked.faults.map((fault) => fault.key)).toContain(key);
        const refusal = await checkTargets(
          { destination, configuration: checked.configuration, organizationId: "o" },
          { egress, vendors },
          AbortSignal.timeout(10_000),
        ).catch((error: unknown) => error);
        expect(refusal, `${destination.type} ${url}`).toMatchObject({ key: "TARGET_NOT_ALLOWED" });
        // A name can resolve to another address at the first request.
        const failed = await createExportDelivery(destination, given, { egress }).probe();
        expect(failed, url).toBe("The target is not allowed.");
      }),
    );
  }
  expect(tried).toBe(ssrfUrls.length * 5);
  expect(reached).toEqual([]);
});

describe("tls_skip_verify", () => {
  test.each([destinations.prometheus_remote_write, destinations.search_cluster])(
    "of $type accepts an untrusted certificate, on connections that no verifying integration uses",
    async (destination) => {
      const { cert, key } = await createTestCertificate();
      const reader = exportReaders[destination.type];
      let connections = 0;
      const server = createHttpsServer({ cert, key }, (request, response) => {
        request.resume().on("end", () => {
          const { status, body } = reader.acceptance({
            method: request.method ?? "",
            path: "",
            headers: {},
            body: Buffer.alloc(0),
            remotePort: 0,
          });
          response.writeHead(status).end(body);
        });
      }).on("secureConnection", () => (connections += 1));
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      onTestFinished(() => {
        server.closeAllConnections();
        server.close();
      });
      const egress = loopbackEgress();
      onTestFinished(() => egress.close());
      const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const deliveryOf = (tlsSkipVerify: boolean) =>
        createExportDelivery(destination, { ...reader.configuration(url), tls_skip_verify: tlsSkipVerify }, { egress });
      const refusal = /^The TLS handshake failed: (DEPTH_ZERO_)?SELF_SIGNED\w*\.$/;
      const items = exportSamples(3, nowMs);
      await expect(deliveryOf(false).samples(items)).rejects.toThrow(refusal);
      expect(await deliveryOf(true).samples(items)).toMatchObject({ taken: 6 });
      expect(await deliveryOf(true).probe()).toBeUndefined();
      expect(await deliveryOf(false).probe()).toMatch(refusal);
      expect(connections).toBeGreaterThan(0);
    },
  );

  test("applies to two types of destinations only", () => {
    const withFlag = Object.values(destinations).filter(({ fields }) => "tls_skip_verify" in fields);
    expect(withFlag.map(({ type }) => type)).toEqual(["prometheus_remote_write", "search_cluster"]);
  });
});
