import { once } from "node:events";
import { createServer, type Server } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import { systemClock } from "@holdfast/common/clock.ts";
import { createAddressPolicy } from "@holdfast/egress/address-policy.ts";
import { createEgressClient } from "@holdfast/egress/egress-client.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { createTestCertificate, type TestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { partial } from "@holdfast/testing/partial.ts";
import type { DnsRecordObject } from "#fleet/zone/dns-record.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { checkTargets } from "./configuration/check-configuration.ts";
import { searchCluster } from "./destinations/search-cluster.ts";
import { createExportSender, createProbe } from "./export-sender.ts";
import { createOwnServices, type OwnServices } from "./own-services.ts";

const name = "logs-k3v9q2zt.local.holdfast.test";
const owner = { kind: "managed-service", id: "s" };

interface Settings {
  readonly host?: string;
  readonly port?: number;
  readonly addresses?: readonly string[];
  readonly ownerKind?: string;
  readonly ca?: string;
}

/** One service of the organization `o` with one record. */
function ownServicesOf({
  host = name,
  port = 9_200,
  addresses = ["127.0.0.1"],
  ownerKind = owner.kind,
  ca = "the authority",
}: Settings = {}): OwnServices {
  const service = runningService({ id: owner.id, organizationId: "o" }, { port });
  const record = partial<DnsRecordObject>({ spec: { addresses, ttlS: 1, owner: { ...owner, kind: ownerKind } } });
  return createOwnServices({
    services: {
      get: (id) => (id === owner.id ? partial<Stored<ManagedServiceObject>>({ object: service }) : undefined),
    },
    records: { get: (id) => (id === host ? partial<Stored<DnsRecordObject>>({ object: record }) : undefined) },
    trustBundle: () => ca,
  });
}

test("a URL with a name and the port of a service of the organization has the published addresses", () => {
  const own = { addresses: ["127.0.0.1"], ca: "the authority" };
  expect(ownServicesOf()(`https://${name}:9200`, "o")).toEqual(own);
  expect(ownServicesOf()(`https://${name.toUpperCase()}:9200/_bulk`, "o")).toEqual(own);
  expect(ownServicesOf({ port: 443 })(`https://${name}`, "o")).toEqual(own);
});

test.each([
  ["another organization", `https://${name}:9200`, "other", {}],
  ["another port", `https://${name}:9201`, "o", {}],
  ["the port of the engine behind the front", `https://${name}:19200`, "o", {}],
  ["no TLS", `http://${name}:9200`, "o", {}],
  ["another name", `https://x.${name}:9200`, "o", {}],
  ["a final dot", `https://${name}.:9200`, "o", {}],
  ["the address", "https://127.0.0.1:9200", "o", {}],
  ["no published address", `https://${name}:9200`, "o", { addresses: [] }],
  ["a name of something else", `https://${name}:9200`, "o", { ownerKind: "hosted-app" }],
  ["no URL", "logs", "o", {}],
] as const)("a URL with %s is no service's", (_, url, organizationId, settings) => {
  expect(ownServicesOf(settings)(url, organizationId)).toBeUndefined();
});

/** The platform's own machines: 127.0.0.0/16, which the policy refuses in any case. */
const policy = createAddressPolicy(["127.0.0.0/8"], {
  host: () => [],
  listeners: () => [],
  machineNetworks: () => ["127.0.0.0/16"],
});

let certificate: TestCertificate;
beforeAll(async () => {
  certificate = await createTestCertificate();
});

async function listening(server: Server | TcpServer): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** An integration of the organization with this endpoint; DNS resolves each name to another machine. */
function integrationAt(url: string, ownServices: OwnServices, organizationId: string, isUnverified = false) {
  const egress = createEgressClient({ policy, resolve: async () => ["127.0.0.2"] });
  onTestFinished(() => egress.close());
  const vendors = { apm: "", cloud: "", logSaas: "" };
  const configuration = { endpoint: url, index_prefix: "p", tls_skip_verify: isUnverified };
  const target = { destination: searchCluster, configuration, organizationId };
  const send = createExportSender({ egress: { users: egress, operators: egress }, vendors, ownServices });
  const signal = AbortSignal.timeout(20_000);
  return {
    check: () => checkTargets(target, { egress, vendors, ownServices }, signal),
    probe: () => createProbe({ send, vendors, clock: systemClock })(target, "both", signal),
  };
}

test("an export reaches a service of its organization, and no other machine of the platform", async () => {
  const hosts: (string | undefined)[] = [];
  const server = createServer(certificate, (request, response) => {
    hosts.push(request.headers.host);
    response.end("{}");
  });
  const port = await listening(server);
  const url = `https://localhost:${port}`;
  const ownServices = ownServicesOf({ host: "localhost", port, ca: certificate.cert });
  for (const isUnverified of [false, true]) {
    const own = integrationAt(url, ownServices, "o", isUnverified);
    await own.check();
    expect(await own.probe()).toBeUndefined();
  }
  for (const [endpoint, organizationId] of [
    [url, "other"],
    [`https://127.0.0.1:${port}`, "o"],
    [`https://localhost:${port + 1}`, "o"],
  ] as const) {
    const refused = integrationAt(endpoint, ownServices, organizationId);
    await expect(refused.check()).rejects.toMatchObject({
      key: "TARGET_NOT_ALLOWED",
      detail: "configuration.endpoint has a forbidden address: exports must not connect to it.",
    });
    expect(await refused.probe()).toBe("The target is not allowed.");
  }
  expect(hosts).toEqual([`localhost:${port}`, `localhost:${port}`]);
  server.closeAllConnections();
});

test("a service is verified by the installation's authority, also with tls_skip_verify", async () => {
  const server = createServer(certificate, (_, response) => response.end("{}"));
  const port = await listening(server);
  const { cert: ca } = await createTestCertificate();
  const ownServices = ownServicesOf({ host: "localhost", port, ca });
  for (const isUnverified of [false, true])
    expect(await integrationAt(`https://localhost:${port}`, ownServices, "o", isUnverified).probe()).toMatch(
      /^The TLS handshake failed: /,
    );
});

test("a service that closes the connection names its allow-list", async () => {
  const port = await listening(createTcpServer((socket) => socket.destroy()));
  const ownServices = ownServicesOf({ host: "localhost", port, ca: certificate.cert });
  expect(await integrationAt(`https://localhost:${port}`, ownServices, "o").probe()).toBe(
    "The connection broke. Is the service running, and do its allowed_cidrs contain the addresses of the controllers?",
  );
});
