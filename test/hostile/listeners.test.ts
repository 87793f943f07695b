import { readFileSync } from "node:fs";
import { request } from "node:http";
import { connect as connectH2 } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serveMetrics } from "@holdfast/common/metrics-listener.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sourceFiles } from "../../bin/source-files.js";
import { createTestAuthority } from "@holdfast/testing/controller/test-authority.ts";
import { emptyProvider } from "@holdfast/testing/machines/empty-provider.ts";
import { hostInstallation, startTestHost } from "@holdfast/testing/machines/test-host.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { inheritedNames, unknownMethods } from "@holdfast/testing/hostile/inherited-names.ts";

/** Files that open a listener, by the test file that sends it `inheritedNames`. */
// biome-ignore format: a table, aligned so that it reads as one
const listeners: Readonly<Record<string, string>> = {
  "agent/keeper/keeper-server.ts":                 "agent/keeper/keeper.test.ts",
  "agent/src/backup/agent-link.ts":                "agent/src/backup/agent-link.test.ts",
  "agent/src/engines/spool-files/files-server.ts": "agent/src/engines/spool-files/files-server.test.ts",
  "common/src/metrics-listener.ts":                "test/hostile/listeners.test.ts",
  "controller/src/api.ts":                         "test/hostile/api-inherited-names.long.test.ts",
  "controller/src/fleet/create-fleet.ts":          "test/hostile/agents-port.test.ts",
  "dns/src/dns-server.ts":                         "dns/src/response.test.ts",
  "dns/src/tcp-server.ts":                         "dns/src/response.test.ts",
  "dns/src/udp-server.ts":                         "dns/src/response.test.ts",
  "host/src/serve-host.ts":                        "test/hostile/listeners.test.ts",
  "https/src/public-port.ts":                      "test/hostile/api-inherited-names.long.test.ts",
  "https/src/server.ts":                           "test/hostile/api-inherited-names.long.test.ts",
  "inference/src/main.ts":                         "inference/src/http/handler.test.ts",
  "ingress/src/login-server.ts":                   "ingress/src/login-server.test.ts",
  "issuer/src/issuer-server.ts":                   "test/hostile/issuer-inherited-names.test.ts",
  "issuer/src/main.ts":                            "test/hostile/listeners.test.ts",
  "local/src/acme/obtain.ts":                      "local/src/acme/obtain.test.ts",
  "mtls/src/mtls-listener.ts":                     "test/hostile/agents-port.test.ts",
  "opmsg/src/opmsg-server.ts":                     "opmsg/src/opmsg-server.test.ts",
  "registry/src/bucket-proxy.ts":                  "registry/src/bucket-proxy.test.ts",
  "registry/src/main.ts":                          "registry/src/registry-server.test.ts",
  "registry/src/registry-server.ts":               "registry/src/registry-server.test.ts",
  "store/src/main.ts":                             "store/src/store-server.test.ts",
  "store/src/store-server.ts":                     "store/src/store-server.test.ts",
  "tds/src/tds-server.ts":                         "tds/src/session/sign-in.test.ts",
};

/** Files that listen only to check whether an address is free, and one that forwards bytes unread. */
const probes = [
  "agent/src/engines/mysql/replication/peer-relay.ts",
  "agent/src/os/listening-sockets.ts",
  "local/src/machine-host.ts",
  "local/src/ports.ts",
];

const checkout = join(import.meta.dirname, "../..");
const textOf = (path: string) => readFileSync(join(checkout, path), "utf8");
const opens =
  /(?<!function )\b(?:listenAt|openAt|createApiServer|createMtlsListener|serveMetrics|startTcpServer|startUdpServer|startStoreServer|startRegistryServer)\(/;
const makesServer = /\bcreate(?:Secure)?(?:Server|Socket)\(/;
const begins = /\.(?:listen|bind)\(/;

test("every listener of the platform has a test of inherited names", () => {
  const found = sourceFiles()
    .filter((path) => /^(?!bench|test)[a-z]+\/(src|keeper)\/.*(?<!\.test)\.ts$/.test(path) && !probes.includes(path))
    .filter((path) => {
      const text = textOf(path);
      return opens.test(text) || (makesServer.test(text) && begins.test(text));
    });
  expect(found.toSorted()).toEqual(Object.keys(listeners));
  for (const test of new Set(Object.values(listeners)))
    expect(textOf(test), `${test} sends the words`).toMatch(/import \{ inheritedNames.*inherited-names\.ts"/);
});

describe("names that every object inherits", () => {
  const rejections: unknown[] = [];
  const note = (error: unknown) => {
    rejections.push(error);
  };
  beforeEach(() => {
    process.on("unhandledRejection", note);
  });
  afterEach(() => {
    process.off("unhandledRejection", note);
    expect(rejections.splice(0)).toEqual([]);
  });

  test.each(["a port", "a socket of the file system"])("are unknown to the metrics at %s", async (place) => {
    const [port = 0] = await freePorts(1);
    const socketPath = join(tmpdir(), `hf-metrics-${process.pid}.sock`);
    const server = await serveMetrics(place === "a port" ? `127.0.0.1:${port}` : socketPath, {
      text: async () => "up 1",
    });
    const send = (method: string, path: string, headers = {}) =>
      new Promise<number | undefined>((resolve, reject) => {
        const at = place === "a port" ? { host: "127.0.0.1", port } : { socketPath };
        const outgoing = request({ ...at, method, path, headers, agent: false }, (response) => {
          resolve(response.resume().statusCode);
        });
        outgoing.on("error", reject).end();
      });
    try {
      for (const word of inheritedNames) {
        expect(await send("GET", `/${word}`)).toBe(404);
        expect(await send("GET", `/metrics/${word}?${word}=${word}`)).toBe(404);
        expect(await send("GET", "/metrics", { [word]: word })).toBe(200);
        // The HTTP parser has no such method.
        expect(await send(word, "/metrics")).toBe(400);
      }
      // The client sends "get" as GET.
      for (const method of unknownMethods.filter((each) => each.toUpperCase() !== "GET"))
        expect(await send(method, "/metrics"), method).toBeOneOf([400, 404]);
      expect(await send("GET", "/metrics")).toBe(200);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  test("are no methods of a host's port, with and without a certificate", async () => {
    const authority = await createTestAuthority();
    const host = await startTestHost(emptyProvider, authority);
    const controller = await authority.identityOf(hostInstallation, { kind: "controller", id: "c-1" });
    const credentials = { key: controller.privateKey, cert: controller.certificate, ca: authority.trustBundle };
    try {
      for (const options of [{}, credentials]) {
        const session = connectH2(`https://127.0.0.1:${host.port}`, { ...options, rejectUnauthorized: false });
        session.on("error", () => undefined);
        const statusOf = (path: string, method = "POST", headers = {}) =>
          new Promise<unknown>((resolve) => {
            const fields = { "content-type": "application/grpc", te: "trailers", ...headers };
            const stream = session.request({ ...fields, ":method": method, ":path": path });
            stream.on("response", (response) => resolve(response["grpc-status"] ?? response[":status"]));
            stream.on("error", resolve);
            stream.end();
          });
        for (const word of inheritedNames) {
          for (const path of [`/${word}`, `/${word}/${word}`, `/holdfast.host.v1.HostService/${word}`])
            expect(Number(await statusOf(path)), path).toBe(12);
          await statusOf("/holdfast.host.v1.HostService/GetFacts", "POST", { [word.toLowerCase()]: word });
        }
        for (const method of [...inheritedNames, ...unknownMethods])
          await statusOf("/holdfast.host.v1.HostService/GetFacts", method);
        session.destroy();
      }
      const remote = await host.connect();
      expect(await remote.list(AbortSignal.timeout(30_000))).toEqual([]);
    } finally {
      await host.close();
    }
  });
});
