import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setImmediate } from "node:timers/promises";
import { createServer as createTlsSocketServer } from "node:tls";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { createAddressPolicy } from "./address-policy.ts";
import { maxPoolAgeMs } from "./connection-pools.ts";
import { retryAfterMsOf } from "./egress-response.ts";
import { createEgressClient, type EgressClient, type EgressRequest } from "./egress-client.ts";

const nothingOwn = { host: () => [], listeners: () => [], machineNetworks: () => [] };

interface Time {
  nowMs: number;
}

function client(options: { allow?: string[]; time?: Time } = {}): EgressClient {
  const { allow = ["127.0.0.0/8"], time } = options;
  const created = createEgressClient({
    policy: createAddressPolicy(allow, nothingOwn),
    resolve: async () => ["127.0.0.1"],
    ...(time && { clock: { now: () => time.nowMs, monotonicMs: () => time.nowMs } }),
  });
  onTestFinished(() => created.close());
  return created;
}

async function listen(server: Server | TcpServer): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  onTestFinished(() => {
    if ("closeAllConnections" in server) server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const requestOf = (more: Partial<EgressRequest> = {}): EgressRequest => ({
  method: "GET",
  headers: {},
  deadlineMs: 60_000,
  signal: new AbortController().signal,
  ...more,
});

test("bodies stream in both directions, with the requested method and headers", async () => {
  const echo = async (request: IncomingMessage, response: ServerResponse) => {
    response.writeHead(201, { "x-method": request.method, "x-sent": request.headers["x-sent"] });
    await pipeline(request, response);
  };
  const port = await listen(createServer((request, response) => void echo(request, response)));
  const chunks = Array.from({ length: 64 }, (_, index) => Buffer.alloc(16 << 10, index));
  const response = await client().request(
    `http://127.0.0.1:${port}/`,
    requestOf({ method: "PUT", headers: { "x-sent": "yes" }, body: Readable.from(chunks) }),
  );
  expect(response).toMatchObject({ status: 201, headers: { "x-method": "PUT", "x-sent": "yes" } });
  const hash = createHash("sha256");
  for await (const chunk of response.body) hash.update(chunk);
  expect(hash.digest("hex")).toBe(createHash("sha256").update(Buffer.concat(chunks)).digest("hex"));
});

test("a response body above its limit fails and is not read further", async () => {
  const port = await listen(createServer((_, response) => void response.end(Buffer.alloc(10_000))));
  const egress = client();
  const url = `http://127.0.0.1:${port}/`;
  const response = await egress.request(url, requestOf({ maxBytes: 9_999 }));
  await expect(response.bytes()).rejects.toMatchObject({ kind: "too large" });
  expect(await (await egress.request(url, requestOf({ maxBytes: 10_000 }))).bytes()).toHaveLength(10_000);
});

test("a slow reader pauses the target", async () => {
  const writtenTo = { slow: 0, fast: 0 };
  const endless = async (response: ServerResponse, reader: "slow" | "fast") => {
    while (!response.destroyed) {
      if (!response.write(Buffer.alloc(64 << 10))) await once(response, "drain").catch(() => undefined);
      writtenTo[reader] += 64 << 10;
    }
  };
  const port = await listen(
    createServer((request, response) => void endless(response, request.url === "/slow" ? "slow" : "fast")),
  );
  const egress = client();
  const open = (path: string) => egress.request(`http://127.0.0.1:${port}${path}`, requestOf({ maxBytes: 1 << 30 }));
  const response = await open("/slow");
  const reader = response.body[Symbol.asyncIterator]();
  await reader.next();
  // A target that is not paused writes as much as the one beside it.
  const fast = await open("/fast");
  let fastBytes = 0;
  for await (const chunk of fast.body) if ((fastBytes += chunk.length) > 128 << 20) break;
  await fast.drop();
  const before = writtenTo.slow;
  expect(before).toBeLessThan(64 << 20);
  for (let read = 0; read < 2 * before; ) read += (await reader.next()).value?.length ?? 0;
  expect(writtenTo.slow).toBeGreaterThan(before);
  await response.drop();
  await expect(reader.next()).rejects.toMatchObject({ kind: "connect" });
});

test("a reader of a dropped body ends, and a short remainder keeps the connection", async () => {
  const sockets = new Set<unknown>();
  const longOnes: ServerResponse[] = [];
  const endNext = () => longOnes.shift()?.end("rest");
  const server = createServer((request, response) => {
    sockets.add(request.socket);
    response.write("begun");
    if (request.url === "/long") longOnes.push(response);
    else response.end();
  });
  const egress = client();
  const url = `http://127.0.0.1:${await listen(server)}`;
  const dropped = await egress.request(`${url}/long`, requestOf());
  const reader = dropped.body[Symbol.asyncIterator]();
  await reader.next();
  const dropping = Promise.all([reader.next(), dropped.drop()]);
  endNext();
  const [last] = await dropping;
  expect(last).toEqual({ done: true, value: undefined });
  await setImmediate();
  const partial = await egress.request(`${url}/long`, requestOf());
  for await (const chunk of partial.body) {
    expect(String(chunk)).toBe("begun");
    break;
  }
  endNext();
  await partial.drop();
  await setImmediate();
  expect(String(await (await egress.request(url, requestOf())).bytes())).toBe("begun");
  expect(sockets.size).toBe(1);
});

test("a stalled body is aborted at the deadline and by the caller's signal", async () => {
  const port = await listen(createServer((_, response) => void response.writeHead(200).write("some")));
  const url = `http://127.0.0.1:${port}/`;
  const stalled = await client().request(url, requestOf({ deadlineMs: 300 }));
  await expect(stalled.bytes()).rejects.toMatchObject({ kind: "timeout" });
  const caller = new AbortController();
  const aborted = await client().request(url, requestOf({ signal: caller.signal }));
  const reading = aborted.bytes();
  caller.abort(new Error("enough"));
  await expect(reading).rejects.toThrow("enough");
});

test("Retry-After is read as seconds and as a date", async () => {
  const port = await listen(createServer((_, response) => void response.writeHead(429, { "retry-after": "7" }).end()));
  const response = await client().request(`http://127.0.0.1:${port}/`, requestOf());
  expect(response.retryAfterMs).toBe(7_000);
  await response.drop();
  const now = Date.parse("2026-01-02T03:04:05Z");
  expect(retryAfterMsOf("Fri, 02 Jan 2026 03:05:05 GMT", now)).toBe(60_000);
  expect(retryAfterMsOf("Fri, 02 Jan 2026 03:03:05 GMT", now)).toBe(0);
  expect(retryAfterMsOf("999999999", now)).toBe(86_400_000);
  expect(retryAfterMsOf("soon", now)).toBeUndefined();
});

test("connections are reused by the same organization for at most five minutes", async () => {
  const sockets = new Set<unknown>();
  const server = createServer((_, response) => void response.end());
  server.keepAliveTimeout = 60_000;
  server.on("connection", (socket) => sockets.add(socket));
  const url = `http://127.0.0.1:${await listen(server)}/`;
  const time = { nowMs: 0 };
  const egress = client({ time });
  const once = async (organizationId: string) => {
    await (await egress.request(url, requestOf({ organizationId }))).bytes();
    // The connection is free one event loop iteration after the response ends.
    await setImmediate();
  };
  for (let n = 0; n < 3; n += 1) await once("a");
  expect(sockets.size).toBe(1);
  await once("b");
  expect(sockets.size).toBe(2);
  time.nowMs = maxPoolAgeMs - 1;
  await once("a");
  expect(sockets.size).toBe(2);
  time.nowMs = maxPoolAgeMs;
  await once("a");
  expect(sockets.size).toBe(3);
});

test("addresses are checked again for each connection", async () => {
  const server = createServer((_, response) => void response.writeHead(200, { connection: "close" }).end());
  const port = await listen(server);
  let address = "127.0.0.1";
  const egress = createEgressClient({
    policy: createAddressPolicy(["127.0.0.1/32"], nothingOwn),
    resolve: async () => [address],
  });
  onTestFinished(() => egress.close());
  const url = `http://name.test:${port}/`;
  await (await egress.request(url, requestOf())).drop();
  address = "127.0.0.2";
  await expect(egress.request(url, requestOf())).rejects.toMatchObject({ kind: "not allowed" });
});

test("a private authority is trusted only for requests that name it, and for its names", async () => {
  const { cert, key } = await createTestCertificate();
  const port = await listen(createTlsServer({ cert, key }, (_, response) => void response.end("ok")));
  const egress = client();
  const trusting = requestOf({ tls: { ca: cert } });
  expect((await (await egress.request(`https://localhost:${port}/`, trusting)).bytes()).toString()).toBe("ok");
  await expect(egress.request(`https://localhost:${port}/`, requestOf())).rejects.toMatchObject({ kind: "tls" });
  await expect(egress.request(`https://other.test:${port}/`, trusting)).rejects.toMatchObject({ kind: "tls" });
});

test("raw connections obey the address policy, plain and over TLS", async () => {
  const { cert, key } = await createTestCertificate();
  const plain = await listen(createTcpServer((socket) => void socket.end("220 plain")));
  const secure = await listen(createTlsSocketServer({ cert, key }, (socket) => void socket.end("220 secure")));
  const egress = client();
  const common = { deadlineMs: 10_000, signal: new AbortController().signal };
  expect(await text(await egress.connect({ host: "mail.test", port: plain, ...common }))).toBe("220 plain");
  const tls = { ca: cert };
  expect(await text(await egress.connect({ host: "localhost", port: secure, tls, ...common }))).toBe("220 secure");
  await expect(egress.connect({ host: "mail.test", port: secure, tls, ...common })).rejects.toMatchObject({
    kind: "tls",
  });
  await expect(egress.connect({ host: "localhost", port: secure, tls: {}, ...common })).rejects.toMatchObject({
    kind: "tls",
  });
  const inside = { host: "mail.test", port: plain, ...common };
  await expect(client({ allow: [] }).connect(inside)).rejects.toMatchObject({ kind: "not allowed" });
});

test("an endless handshake is aborted at the deadline", async () => {
  const port = await listen(createTcpServer((socket) => void socket.on("error", () => undefined)));
  const target = { host: "mail.test", port, tls: {}, deadlineMs: 300, signal: new AbortController().signal };
  await expect(client().connect(target)).rejects.toMatchObject({ kind: "timeout" });
});
