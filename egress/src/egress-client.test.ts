import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Answer } from "dns-packet";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startTestDnsServer, type TestDnsServer } from "@holdfast/testing/network/dns-zone.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { createAddressPolicy, type OwnAddresses } from "./address-policy.ts";
import { createEgressClient, type EgressClient } from "./egress-client.ts";
import { ssrfUrls } from "@holdfast/testing/ssrf-corpus.ts";
import { createResolveName } from "./resolve-name.ts";
import { parseTarget } from "./target.ts";

const nothingOwn: OwnAddresses = { host: () => [], listeners: () => [], machineNetworks: () => [] };

let dns: TestDnsServer;
let questions = 0;

const a = (name: string, data: string): Answer => ({ type: "A", name, data, ttl: 0 });
const aaaa = (name: string, data: string): Answer => ({ type: "AAAA", name, data, ttl: 0 });
const zone: Readonly<Record<string, (name: string) => Answer[]>> = {
  "loopback.evil.test": (name) => [a(name, "127.0.0.1")],
  "loopback6.evil.test": (name) => [aaaa(name, "::1")],
  "mapped.evil.test": (name) => [aaaa(name, "::ffff:127.0.0.1")],
  "nat64.evil.test": (name) => [aaaa(name, "64:ff9b::7f00:1")],
  "sixtofour.evil.test": (name) => [aaaa(name, "2002:7f00:1::")],
  "private.evil.test": (name) => [a(name, "10.1.2.3")],
  "metadata.evil.test": (name) => [a(name, "169.254.169.254")],
  "zero.evil.test": (name) => [a(name, "0.0.0.0")],
  "mixed.evil.test": (name) => [a(name, "1.1.1.1"), a(name, "127.0.0.1")],
  "alias.evil.test": (name) => [
    { type: "CNAME", name, data: "loopback.evil.test", ttl: 0 },
    a("loopback.evil.test", "127.0.0.1"),
  ],
  // Public on the first lookup, loopback on all later ones (DNS rebinding).
  "rebinding.evil.test": (name) => [a(name, (questions += 1) > 2 ? "127.0.0.1" : "192.0.2.7")],
};

beforeAll(async () => {
  dns = await startTestDnsServer((name) => zone[name.toLowerCase()]?.(name) ?? []);
});
afterAll(() => dns?.close());

function client({ allow = [], own = nothingOwn }: { allow?: string[]; own?: OwnAddresses } = {}): EgressClient {
  const judge = createAddressPolicy(allow, own);
  const created = createEgressClient({ policy: judge, resolve: createResolveName({ servers: [dns.address] }) });
  onTestFinished(() => created.close());
  return created;
}

async function listen(server: Server | TcpServer, host = "127.0.0.1"): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, host, resolve);
  await promise;
  onTestFinished(() => {
    if ("closeAllConnections" in server) server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const post = (egress: EgressClient, url: string, deadlineMs = 60_000) =>
  egress.post(url, { headers: {}, body: "{}", deadlineMs, signal: new AbortController().signal });

test("no URL of the SSRF corpus opens a connection", async () => {
  expect(ssrfUrls.length).toBeGreaterThanOrEqual(80);
  let connections = 0;
  const port = await listen(
    createTcpServer((socket) => {
      connections += 1;
      socket.destroy();
    }),
    "::",
  );
  const egress = client();
  await Promise.all(
    ssrfUrls.map(async (url) => {
      const target = url.replaceAll("PORT", String(port));
      const failure = await post(egress, target).catch((error: unknown) => error);
      expect(failure, target).toMatchObject({ name: "EgressFailure" });
      expect(["not allowed", "dns"], target).toContain((failure as { kind: string }).kind);
    }),
  );
  expect(connections).toBe(0);
});

test("a socket connects to the checked addresses, even if a later lookup returns others", async () => {
  let lookups = 0;
  const port = await listen(createServer((_, response) => void response.end("ok")));
  const judge = createAddressPolicy(["127.0.0.0/8"], nothingOwn);
  const egress = createEgressClient({
    policy: judge,
    // The checked lookup returns the listener's address; a second one would return another address.
    async resolve() {
      lookups += 1;
      return lookups === 1 ? ["127.0.0.1"] : ["192.0.2.1"];
    },
  });
  onTestFinished(() => egress.close());
  expect(await post(egress, `http://name.test:${port}/`)).toEqual({ status: 200 });
  expect(lookups).toBe(1);
});

test("allowed networks are reachable, except for the platform's own listeners", async () => {
  const server = createServer((_, response) => void response.end("ok"));
  const port = await listen(server, "::");
  const own: OwnAddresses = {
    host: () => ["192.168.7.7"],
    listeners: () => [{ host: "127.0.0.1", port: port + 1 }],
    machineNetworks: () => ["127.77.0.0/16"],
  };
  const allow = ["127.0.0.0/8", "192.168.0.0/16", "::1/128", "::ffff:0:0/96"];
  const egress = client({ allow, own });
  expect(await post(egress, `http://127.0.0.1:${port}/`)).toEqual({ status: 200 });
  expect(await post(egress, `http://[::1]:${port}/`)).toEqual({ status: 200 });
  const refused = [
    `http://127.0.0.1:${port + 1}/`,
    `http://127.9.9.9:${port + 1}/`,
    `http://[::1]:${port + 1}/`,
    `http://[::ffff:127.0.0.1]:${port + 1}/`,
    `http://192.168.7.7:${port + 1}/`,
    `http://127.77.1.2:${port}/`,
    `http://[::ffff:127.77.1.2]:${port}/`,
  ];
  for (const url of refused) await expect(post(egress, url), url).rejects.toMatchObject({ kind: "not allowed" });
});

test("a redirect is returned, not followed", async () => {
  let followed = 0;
  const inner = await listen(createServer((_, response) => void ((followed += 1), response.end())));
  for (const status of [301, 302, 303, 307, 308]) {
    const location = `http://127.0.0.1:${inner}/`;
    const port = await listen(createServer((_, response) => void response.writeHead(status, { location }).end()));
    expect(await post(client({ allow: ["127.0.0.0/8"] }), `http://127.0.0.1:${port}/`)).toEqual({ status });
  }
  expect(followed).toBe(0);
});

/** Servers that never end a response, by how they handle a connection. */
const endless: Readonly<Record<string, (socket: Socket) => void>> = {
  "says nothing": () => undefined,
  "sends its head by the byte": (socket) => void drip(socket, "HTTP/1.1 200 OK\r\nx: ", "a"),
  "sends interim responses without end": (socket) => void drip(socket, "", "HTTP/1.1 102 Processing\r\n\r\n"),
};

test.each(Object.entries(endless))("a server that %s is aborted at the deadline", async (_, serve) => {
  const port = await listen(createTcpServer((socket) => serve(socket.on("error", () => undefined))));
  const startedMs = Date.now();
  const failing = post(client({ allow: ["127.0.0.0/8"] }), `http://127.0.0.1:${port}/`, 400);
  await expect(failing).rejects.toMatchObject({ kind: "timeout", message: "No response within 0.4 s." });
  expect(Date.now() - startedMs).toBeLessThan(60_000);
});

test("endless headers are not read", async () => {
  const serve = (socket: Socket) => {
    socket.on("error", () => undefined);
    socket.write(`HTTP/1.1 200 OK\r\n${"x: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(10_000)}`);
  };
  const port = await listen(createTcpServer(serve));
  await expect(post(client({ allow: ["127.0.0.0/8"] }), `http://127.0.0.1:${port}/`)).rejects.toMatchObject({
    kind: "protocol",
  });
});

test("an endless body is read up to a limit, and the status counts", async () => {
  let sent = 0;
  const server = createServer((_, response) => {
    const chunk = Buffer.alloc(16 << 10);
    const more = () => {
      while (!response.destroyed && response.write(chunk)) sent += chunk.length;
    };
    response.on("drain", more);
    more();
  });
  const port = await listen(server);
  expect(await post(client({ allow: ["127.0.0.0/8"] }), `http://127.0.0.1:${port}/`)).toEqual({ status: 200 });
  expect(sent).toBeLessThan(16 << 20);
});

test("an untrusted certificate is a TLS failure", async () => {
  const { cert, key } = await createTestCertificate();
  const port = await listen(createTlsServer({ cert, key }, (_, response) => void response.end()));
  await expect(post(client({ allow: ["127.0.0.0/8"] }), `https://127.0.0.1:${port}/`)).rejects.toMatchObject({
    kind: "tls",
  });
});

test("refused connections and unknown names have their own kinds of failure", async () => {
  const server = createTcpServer();
  const port = await listen(server);
  server.close();
  const egress = client({ allow: ["127.0.0.0/8"] });
  await expect(post(egress, `http://127.0.0.1:${port}/`)).rejects.toMatchObject({
    kind: "connect",
    message: "The connection was refused.",
  });
  await expect(post(egress, "http://nowhere.evil.test/")).rejects.toMatchObject({ kind: "dns" });
});

test("a check refuses names with internal addresses, and accepts unresolved names", async () => {
  const check = async (url: string) => {
    const parsed = parseTarget(url);
    if (!parsed.ok) throw new Error(parsed.detail);
    await client().check(parsed.target, new AbortController().signal);
  };
  await expect(check("http://private.evil.test/")).rejects.toMatchObject({ kind: "not allowed" });
  await check("http://nowhere.evil.test/");
});

async function drip(socket: Socket, first: string, each: string): Promise<void> {
  socket.write(first);
  while (!socket.destroyed) {
    // Time: the rate of a target that sends slowly.
    await delay(20);
    socket.write(each);
  }
}
