import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect as connectH2 } from "node:http2";
import { connect as connectPlain } from "node:net";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { createClientAddresses } from "@holdfast/common/client-address.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterEach, expect, test } from "vitest";
import type { RequestHandler } from "./request-handler.ts";
import { type ApiServer, createApiServer } from "./server.ts";

let server: ApiServer | undefined;

afterEach(async () => {
  await server?.close(100);
  server = undefined;
});

async function start(handler: RequestHandler): Promise<{ port: number; ca: string }> {
  const { key, cert } = await createTestCertificate();
  server = createApiServer({ key, cert, log: silentLog, handler });
  return { port: await server.listen(0, "127.0.0.1"), ca: cert };
}

/** Sends raw HTTP/1.1 bytes and returns everything up to the end of the connection. */
function raw(port: number, ca: string, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, ca, servername: "localhost" }, () => socket.write(text));
    let answer = "";
    socket.on("data", (chunk: Buffer) => (answer += chunk.toString()));
    socket.on("close", () => resolve(answer));
    // A response before the end of the request may be followed by a connection reset.
    socket.on("error", (error) => answer === "" && reject(error));
  });
}

test("invalid HTTP gets a problem document", async () => {
  const { port, ca } = await start((_request, response) => void response.end("ok"));
  for (const text of [
    "GET / HTTP/1.1\r\nbad header\r\n\r\n",
    `GET / HTTP/1.1\r\nHost: x\r\nA: ${"x".repeat(20_000)}\r\n\r\n`,
  ]) {
    const answer = await raw(port, ca, text);
    expect(answer).toMatch(/^HTTP\/1.1 4\d\d /);
    expect(answer).toContain("application/problem+json");
  }
});

/** Records the path and host of each request that reaches the handler. */
async function startRecording(): Promise<{ port: number; ca: string; handled: string[] }> {
  const handled: string[] = [];
  const at = await start(({ url = "", headers }, response) => {
    handled.push(`${url} of ${headers.host}`);
    response.end("ok");
  });
  return { ...at, handled };
}

test("an absolute-form target names the path and the host of its request", async () => {
  const { port, ca, handled } = await startRecording();
  const head = `GET https://api.example:${port}/healthz?a=1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`;
  expect(await raw(port, ca, head)).toMatch(/^HTTP\/1.1 200 /);
  expect(handled).toEqual([`/healthz?a=1 of api.example:${port}`]);
});

test.each([
  ["GET http://[::1 HTTP/1.1\r\nhost: x", 400],
  ["GET javascript:1 HTTP/1.1\r\nhost: x", 400],
  ["GET * HTTP/1.1\r\nhost: x", 400],
  ["GET / HTTP/1.1\r\nhost: a\r\nhost: b", 400],
  ["GET / HTTP/1.1", 400],
  ["OPTIONS * HTTP/1.1\r\nhost: x", 204],
])("%j gets %i, and no handler sees it", async (head, status) => {
  const { port, ca, handled } = await startRecording();
  expect(await raw(port, ca, `${head}\r\nconnection: close\r\n\r\n`)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(handled).toEqual([]);
});

test("on close, requests end, idle connections are closed and new ones refused", async () => {
  const finish: (() => void)[] = [];
  let isAnswered = false;
  const { port, ca } = await start((request, response) => {
    response.once("finish", () => (isAnswered ||= request.url === "/immediate"));
    if (request.url === "/immediate") response.end("immediate");
    else finish.push(() => response.end("done"));
  });
  const session = connectH2(`https://localhost:${port}`, { ca });
  const stream = session.request({ ":path": "/" });
  const idle = connectH2(`https://localhost:${port}`, { ca });
  const first = raw(port, ca, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const waits = raw(port, ca, "GET /immediate HTTP/1.1\r\nHost: x\r\n\r\n");
  await waitUntil("all are connected", () => finish.length === 2 && isAnswered && !idle.connecting);
  // The grace time exceeds the test's timeout: the test fails if a close waits for it.
  const closed = server?.close(600_000);
  expect(await waits).toContain("immediate");
  for (const end of finish) end();
  expect(await first).toContain("done");
  stream.resume();
  await closed;
  idle.destroy();
  session.destroy();
  await expect(raw(port, ca, "GET / HTTP/1.1\r\n\r\n")).rejects.toThrow("ECONNREFUSED");
  server = undefined;
});

test("a connection whose handshake ends during close is closed too", { timeout: 30_000 }, async () => {
  const { port, ca } = await start((_request, response) => void response.end("ok"));
  const socket = connectPlain(port, "127.0.0.1");
  // Connections are accepted in order.
  await raw(port, ca, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const closed = server?.close(600_000);
  const session = connectH2(`https://localhost:${port}`, {
    createConnection: () => connect({ socket, ca, servername: "localhost", ALPNProtocols: ["h2"] }),
  });
  const ended = new Promise((resolve) => session.once("close", resolve));
  await closed;
  await ended;
  server = undefined;
});

test("a renewed certificate applies to new connections", async () => {
  const { port } = await start((_request, response) => void response.end("ok"));
  const next = await createTestCertificate();
  server?.renew(next.key, next.cert);
  expect(await raw(port, next.cert, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).toContain("ok");
});

test("a full port closes the longest idle connection of the largest source", async () => {
  const { key, cert } = await createTestCertificate();
  server = createApiServer({
    key,
    cert,
    log: silentLog,
    handler: (_request, response) => void response.end("ok"),
    maxConnections: 8,
  });
  const port = await server.listen(0, "127.0.0.1");
  const open = (localAddress: string) =>
    new Promise<TLSSocket>((resolve, reject) => {
      const options = { host: "127.0.0.1", port, ca: cert, servername: "localhost", localAddress } as ConnectionOptions;
      const socket = connect(options, () => resolve(socket));
      socket.on("error", reject);
    });
  const closed: string[] = [];
  const hold = async (name: string, localAddress: string) => {
    const socket = await open(localAddress);
    socket.removeAllListeners("error").on("error", () => undefined);
    socket.resume().once("close", () => closed.push(name));
    return socket;
  };
  const honest = await hold("honest", "127.0.0.2");
  for (let n = 0; n < 7; n += 1) await hold(`greedy-${n}`, "127.0.0.3");
  const later = [await hold("late", "127.0.0.4"), await hold("later", "127.0.0.4")];
  await waitUntil("two were closed", () => closed.length === 2);
  expect(closed).toEqual(["greedy-0", "greedy-1"]);
  for (const socket of [honest, ...later]) expect(socket.destroyed).toBe(false);
});

test("stalled handshakes delay only their own source", async () => {
  const { port, ca } = await start((_request, response) => void response.end("ok"));
  // The start of a TLS hello that never completes.
  const head = Buffer.from("1603010200010001fc0303", "hex");
  const stalled = Array.from({ length: 200 }, () => {
    const socket = connectPlain({ port, host: "127.0.0.1", localAddress: "127.0.0.9" }, () => socket.write(head));
    return socket.on("error", () => undefined);
  });
  await Promise.all(stalled.map((socket) => once(socket, "connect")));
  expect(await raw(port, ca, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).toContain("ok");
  for (const socket of stalled) socket.destroy();
});

test("a response that is not read is aborted, without an effect on other streams", async () => {
  const { key, cert } = await createTestCertificate();
  const cut: string[] = [];
  server = createApiServer({
    key,
    cert,
    log: silentLog,
    stallTimeoutMs: 600,
    handler: (request, response) => {
      if (request.url === "/small") return void response.end("small");
      response.once("close", () => cut.push(request.httpVersion));
      (response as ServerResponse).writeHead(200);
      for (let n = 0; n < 200; n += 1) (response as NodeJS.WritableStream).write(Buffer.alloc(64 * 1024));
      response.end();
    },
  });
  const port = await server.listen(0, "127.0.0.1");
  const socket = connect({ host: "127.0.0.1", port, ca: cert, servername: "localhost" }, () => {
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  });
  socket.on("error", () => undefined);
  const session = connectH2(`https://localhost:${port}`, { ca: cert });
  const stuck = session.request({ ":path": "/" });
  stuck.on("error", () => undefined);
  await waitUntil("both are cut", () => cut.length === 2);
  expect(cut.toSorted()).toEqual(["1.1", "2.0"]);
  const small = session.request({ ":path": "/small" });
  let text = "";
  for await (const chunk of small) text += String(chunk);
  expect(text).toBe("small");
  session.destroy();
  socket.destroy();
});

test("a failed handler ends only its request, with 500 and the logged id", async () => {
  const { key, cert: ca } = await createTestCertificate();
  const logged: { readonly requestId?: unknown; readonly path?: unknown; readonly error?: unknown }[] = [];
  server = createApiServer({
    key,
    cert: ca,
    log: { error: (_message, fields = {}) => void logged.push(fields) },
    handler(request, response) {
      if (request.url === "/ok") return void response.end("ok");
      if (request.url?.startsWith("/throws") === true) throw new TypeError("a table has no such key");
      if (request.url === "/half") (response as ServerResponse).write("half");
      return Promise.reject(new Error("nobody waits for it"));
    },
  });
  const port = await server.listen(0, "127.0.0.1");
  const session = connectH2(`https://localhost:${port}`, { ca });
  const sendRequest = async (path: string) => {
    const stream = session.request({ ":path": path });
    let text = "";
    let status = 0;
    stream.on("response", (headers) => (status = Number(headers[":status"])));
    stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
    stream.on("error", () => undefined);
    await once(stream, "close");
    return { status, text };
  };
  for (const path of ["/throws?token=secret", "/rejects"]) {
    const { status, text } = await sendRequest(path);
    const { requestId } = logged.at(-1) ?? {};
    expect(status).toBe(500);
    expect(JSON.parse(text)).toMatchObject({ code: "internal", status: 500, instance: `urn:uuid:${requestId}` });
    expect(text).not.toMatch(/no such key|nobody waits/);
  }
  expect(logged).toMatchObject([{ path: "/throws" }, { path: "/rejects" }]);
  expect((await sendRequest("/half")).text).not.toContain("internal");
  const old = await raw(port, ca, "GET /throws HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  expect(old).toMatch(/^HTTP\/1.1 500 [\s\S]*urn:uuid:/);
  expect(await sendRequest("/ok")).toEqual({ status: 200, text: "ok" });
  session.destroy();
});

test("only a trusted proxy names the client of a connection", async () => {
  const { key, cert: ca } = await createTestCertificate();
  const clients = createClientAddresses({ trustedProxies: ["127.0.0.7"], balancers: [] });
  server = createApiServer({
    key,
    cert: ca,
    log: silentLog,
    clients,
    handler: (_request, response, peer) => void response.end(peer ?? ""),
  });
  const port = await server.listen(0, "127.0.0.1");
  const through = async (localAddress: string, header: string) => {
    const plain = connectPlain({ host: "127.0.0.1", port, localAddress });
    await once(plain, "connect");
    plain.write(header);
    const socket = connect({ socket: plain, ca, servername: "localhost" }, () =>
      socket.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
    );
    let answer = "";
    socket.on("data", (chunk: Buffer) => (answer += chunk.toString()));
    socket.on("error", () => undefined);
    await new Promise((resolve) => socket.once("close", resolve));
    return answer.split("\r\n\r\n")[1] ?? "";
  };
  const header = "PROXY TCP4 203.0.113.1 10.0.0.1 4711 443\r\n";
  expect(await through("127.0.0.7", header)).toContain("203.0.113.1");
  expect(await through("127.0.0.7", "")).toContain("127.0.0.7");
  expect(await through("127.0.0.7", "PROXY TCP4 words\r\n")).toBe("");
  expect(await through("127.0.0.8", "")).toContain("127.0.0.8");
  // Not a TLS hello.
  expect(await through("127.0.0.8", header)).toBe("");
});
