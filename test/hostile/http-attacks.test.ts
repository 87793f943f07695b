import type { ServerResponse } from "node:http";
import { request } from "node:https";
import { connect, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { silentLog } from "@holdfast/common/log.ts";
import { type ApiServer, createApiServer } from "@holdfast/https/server.ts";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import {
  endHeaders,
  endStream,
  field,
  frame,
  frameTypes,
  get,
  openRaw,
  openTls,
  type RawClient,
  type RawTarget,
  setting,
} from "./raw-http2.ts";

const largeBytes = 4 << 20;
const maxInFlight = 40;
const streamsMax = 250;

/** A public port with its limits; limits of connections and times are low. */
let server: ApiServer;
let target: RawTarget;
const paths: string[] = [];
const underWay = new Set<ServerResponse>();
const open: { destroy(): void }[] = [];

beforeAll(async () => {
  const { key, cert: ca } = await createTestCertificate();
  server = createApiServer({
    key,
    cert: ca,
    log: silentLog,
    maxConnections: maxInFlight,
    stallTimeoutMs: 1_200,
    headTimeoutMs: 5_000,
    handler(incoming, answer) {
      const response = answer as ServerResponse;
      paths.push(incoming.url ?? "");
      underWay.add(response);
      response.once("close", () => underWay.delete(response));
      if (incoming.url === "/never") return;
      if (incoming.method === "POST") return void incoming.once("end", () => response.end("ok")).resume();
      if (incoming.url !== "/large") return void response.end("ok");
      const chunk = Buffer.alloc(64 << 10);
      let remaining = largeBytes;
      const write = () => {
        while (remaining > 0 && !response.destroyed) {
          remaining -= chunk.length;
          if (!response.write(chunk)) return void response.once("drain", write);
        }
        response.end();
      };
      write();
    },
  });
  target = { port: await server.listen(0, "127.0.0.1"), ca, localAddress: "127.0.0.66" };
});
afterEach(async () => {
  for (const each of open.splice(0)) each.destroy();
  await waitUntil("nothing of the attack is under way", () => underWay.size === 0);
  paths.length = 0;
});
afterAll(() => server?.close(100));

/** Duration of a request, in ms, of a client at another address over a new connection. */
function callHonestly(): Promise<number> {
  const { port, ca } = target;
  const options = {
    host: "127.0.0.1",
    port,
    ca,
    servername: "localhost",
    localAddress: "127.0.0.2",
    agent: false,
    path: "/",
  };
  return new Promise((resolve, reject) => {
    const outgoing = request(options, (response) =>
      response.resume().once("end", () => resolve(response.statusCode ?? 0)),
    );
    outgoing.once("error", (error) => reject(new Error("the honest caller was not served", { cause: error })));
    outgoing.end();
  });
}

/** Resolves when either side closes the socket, with or without an error. */
function closeOf(socket: Socket): Promise<void> {
  return new Promise((resolve) => void socket.once("close", () => resolve()));
}

async function raw(settings?: Buffer): Promise<RawClient> {
  const client = await openRaw(target, settings);
  open.push(client.socket);
  return client;
}

/** Repeats the frames until the server closes the connection, a bounded number of times. */
async function flood(client: RawClient, bytes: Buffer, times: number): Promise<void> {
  for (let n = 0; n < times && client.send(bytes); n += 1) if (n % 16 === 15) await turn();
}

const odd = (n: number) => n * 2 + 1;
const headersFrame = (n: number, path: string) => frame(frameTypes.headers, endHeaders | endStream, odd(n), get(path));

describe("over h2", () => {
  test("rapid reset ends the connection after a thousand or two", async () => {
    const client = await raw();
    const reset = (n: number) => frame(frameTypes.reset, 0, odd(n), Buffer.from([0, 0, 0, 8]));
    for (let n = 0; n < 20_000 && client.send(Buffer.concat([headersFrame(n, "/never"), reset(n)])); n += 1)
      if (n % 50 === 49) await turn();
    expect(await callHonestly()).toBe(200);
    await client.closed;
    expect(paths.length).toBeLessThan(3_000);
  });

  test("of ten thousand streams 250 are opened, and the connection is closed", async () => {
    const client = await raw();
    for (let n = 0; n < 10_000 && client.send(headersFrame(n, "/never")); n += 1) if (n % 50 === 49) await turn();
    expect(await callHonestly()).toBe(200);
    await client.closed;
    expect(paths.filter((path) => path === "/never").length).toBeLessThanOrEqual(streamsMax);
  });

  test("endless headers are cut off after a few frames", async () => {
    const client = await raw();
    client.send(frame(frameTypes.headers, 0, 1, get("/")));
    const more = frame(
      frameTypes.continuation,
      0,
      1,
      Buffer.concat(Array.from({ length: 300 }, () => field("a", "b".repeat(40)))),
    );
    await flood(client, more, 10_000);
    await client.closed;
    expect(await callHonestly()).toBe(200);
    expect(paths).toEqual(["/"]);
  });

  test("a few bytes that expand to many headers are no request", async () => {
    const client = await raw();
    // One field of 3 KB enters the table, and each later byte refers to it once more.
    const stored = Buffer.concat([Buffer.from([0x40]), field("large", "x".repeat(3_000)).subarray(1)]);
    for (let n = 0; n < 20; n += 1)
      client.send(
        frame(
          frameTypes.headers,
          endHeaders | endStream,
          odd(n),
          Buffer.concat([get("/bomb"), stored, Buffer.alloc(10_000, 0xbe)]),
        ),
      );
    await waitUntil(
      "they are refused",
      () =>
        client.socket.destroyed ||
        (client.received.get(frameTypes.reset) ?? 0) + (client.received.get(frameTypes.headers) ?? 0) >= 20,
    );
    expect(await callHonestly()).toBe(200);
    expect(paths).not.toContain("/bomb");
  });

  test("responses to a window of zero are cut off, including small ones", async () => {
    const client = await raw(setting(4, 0));
    for (let n = 0; n < 200; n += 1) client.send(headersFrame(n, n % 2 === 0 ? "/large" : "/"));
    await waitUntil("all are requested", () => paths.length >= 200 || client.socket.destroyed);
    expect(await callHonestly()).toBe(200);
    await waitUntil("all are cut", () => underWay.size === 0);
  });

  test.each([
    ["PING", frame(frameTypes.ping, 0, 0, Buffer.alloc(8))],
    ["SETTINGS", frame(frameTypes.settings, 0, 0, setting(3, 100))],
  ])("endless %s close the connection, whether their responses are read or not", async (_, bytes) => {
    for (const reads of [true, false]) {
      const client = await raw();
      if (!reads) client.socket.pause();
      const many = Buffer.concat(Array.from({ length: 20 }, () => bytes));
      const flooding = flood(client, many, 5_000);
      expect(await callHonestly()).toBe(200);
      await flooding;
      client.socket.resume();
      await client.closed;
    }
  });

  test.each([
    ["PRIORITY", frame(frameTypes.priority, 0, 1, Buffer.alloc(5))],
    ["WINDOW_UPDATE", frame(frameTypes.windowUpdate, 0, 0, Buffer.from([0, 0, 0, 1]))],
    ["frames of an unknown type", frame(0xf7, 0, 0, Buffer.alloc(1_000))],
    ["DATA without data", frame(frameTypes.data, 0, 1)],
  ])("endless %s delay no other client", async (_, bytes) => {
    const client = await raw();
    client.send(frame(frameTypes.headers, endHeaders, 1, get("/never")));
    const flooding = flood(client, Buffer.concat(Array.from({ length: 20 }, () => bytes)), 1_000);
    expect(await callHonestly()).toBe(200);
    await flooding;
  });
});

describe("over HTTP/1.1", () => {
  /**
   * The response to some bytes until the server closes the connection, with the paths of the requests that it parsed.
   */
  async function exchange(text: string): Promise<{ answer: string; paths: readonly string[] }> {
    const socket = await openTls(target, "http/1.1");
    open.push(socket);
    paths.length = 0;
    let response = "";
    socket.on("data", (chunk: Buffer) => (response += chunk.toString("latin1")));
    const closed = closeOf(socket);
    socket.write(text, "latin1");
    await closed;
    return { answer: response, paths: paths.filter((path) => path !== "") };
  }

  const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
  const post = (...headers: string[]) => ["POST / HTTP/1.1", "Host: x", ...headers, "", ""].join("\r\n");
  test.each([
    ["a length and chunks", post("Content-Length: 4", "Transfer-Encoding: chunked") + `0\r\n\r\n${smuggled}`],
    ["chunks and a length", post("Transfer-Encoding: chunked", "Content-Length: 4") + `0\r\n\r\n${smuggled}`],
    ["two lengths", post("Content-Length: 0", "Content-Length: 36") + smuggled],
    ["a length with a sign", post("Content-Length: +0") + smuggled],
    ["a length in hexadecimal", post("Content-Length: 0x0") + smuggled],
    ["a length that is a list", post("Content-Length: 0, 36") + smuggled],
    ["chunks that are no last coding", post("Transfer-Encoding: chunked, identity") + `0\r\n\r\n${smuggled}`],
    ["an unknown coding", post("Transfer-Encoding: xchunked") + `0\r\n\r\n${smuggled}`],
    ["a blank before the colon", post("Transfer-Encoding : chunked", "Content-Length: 5") + `0\r\n\r\n${smuggled}`],
    ["a folded header", post("Transfer-Encoding:\r\n chunked", "Content-Length: 5") + `0\r\n\r\n${smuggled}`],
    ["a line feed alone", `POST / HTTP/1.1\nHost: x\nContent-Length: 0\n\n${smuggled}`],
    [
      "a carriage return within",
      post("A: b\rTransfer-Encoding: chunked", "Content-Length: 5") + `0\r\n\r\n${smuggled}`,
    ],
    ["a zero byte", post("A: b\0c", "Content-Length: 0") + smuggled],
    ["a chunk whose size is no number", post("Transfer-Encoding: chunked") + `0x0\r\n\r\n${smuggled}`],
    ["a chunk that is longer than its size", post("Transfer-Encoding: chunked") + `1\r\nab0\r\n\r\n${smuggled}`],
    ["a chunk's extension of 64 KiB", post("Transfer-Encoding: chunked") + `1;${"e".repeat(65_536)}\r\na\r\n0\r\n\r\n`],
    ["no host", `GET /smuggled HTTP/1.1\r\n\r\n`],
    ["an empty host", `GET /smuggled HTTP/1.1\r\nHost: \r\n\r\n`],
    ["a host with a space", `GET /smuggled HTTP/1.1\r\nHost: a b\r\n\r\n`],
  ])("%s is rejected, and no later bytes are parsed as a request", async (_, text) => {
    const { answer: response, paths: parsed } = await exchange(text);
    expect(response.slice(0, 12)).toMatch(/^(HTTP\/1\.1 4\d\d)?$/);
    expect(parsed).not.toContain("/smuggled");
    expect(await callHonestly()).toBe(200);
  });

  test("slow request heads are ended", async () => {
    const sockets = await Promise.all(Array.from({ length: 20 }, () => openTls(target, "http/1.1")));
    open.push(...sockets);
    const ends = sockets.map((socket) => closeOf(socket.resume()));
    for (const socket of sockets) socket.write("GET / HTTP/1.1\r\nHost: x\r\n");
    const dripping = setInterval(() => sockets.forEach((socket) => socket.writable && socket.write("A: b\r\n")), 100);
    expect(await callHonestly()).toBe(200);
    await Promise.all(ends);
    clearInterval(dripping);
    expect(paths.filter((path) => path !== "/")).toEqual([]);
  });

  test("more than 250 pipelined requests close the connection", async () => {
    const socket = await openTls(target, "http/1.1");
    open.push(socket);
    socket.resume();
    const closed = closeOf(socket);
    socket.write("GET /never HTTP/1.1\r\nHost: x\r\n\r\n".repeat(2_000));
    expect(await callHonestly()).toBe(200);
    await closed;
    expect(paths.length).toBeLessThanOrEqual(streamsMax + 10);
  });

  test("responses that the client does not read are cut off", async () => {
    const sockets = await Promise.all(Array.from({ length: 20 }, () => openTls(target, "http/1.1")));
    open.push(...sockets);
    for (const socket of sockets) socket.pause().write("GET /large HTTP/1.1\r\nHost: x\r\n\r\n".repeat(10));
    await waitUntil("all are requested", () => paths.length >= 20);
    expect(await callHonestly()).toBe(200);
    await waitUntil("all are cut", () => underWay.size === 0);
  });
});

describe("before the first request", () => {
  function openPlain(): Socket {
    const socket = connect({ host: "127.0.0.1", port: target.port, localAddress: target.localAddress });
    socket.on("error", () => undefined).resume();
    open.push(socket);
    return socket;
  }

  test("stalled handshakes end, and connections over the limit shut no other client out", async () => {
    const half = Buffer.from("1603010200010001fc0303", "hex");
    const sockets = Array.from({ length: maxInFlight * 5 }, openPlain);
    const ends = sockets.map((socket) => closeOf(socket));
    for (const [n, socket] of sockets.entries()) if (n % 2 === 0) socket.write(half);
    expect(await callHonestly()).toBe(200);
    await Promise.all(ends);
  });

  test("a connection without TLS is closed", async () => {
    const socket = openPlain();
    const closed = closeOf(socket);
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await closed;
    expect(await callHonestly()).toBe(200);
  });
});
