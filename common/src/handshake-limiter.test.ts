import { once } from "node:events";
import { type AddressInfo, connect as connectPlain, createServer, type Socket } from "node:net";
import { connect, createServer as createTlsServer, type TLSSocket } from "node:tls";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { peerAddressOf, createHandshakeLimiter, type HandshakeLimiter } from "./handshake-limiter.ts";

const certificate = await createTestCertificate();
const tls = createTlsServer(certificate);
const secured: TLSSocket[] = [];
tls.on("secureConnection", (socket) => secured.push(socket));

let handshakes: HandshakeLimiter;
let started: Socket[];
let accepted: number;
let port: number;
const opened: { destroy(): void }[] = [];
const listener = createServer((socket) => {
  accepted += 1;
  socket.on("error", () => undefined);
  handshakes.add(socket);
});

beforeEach(async () => {
  started = [];
  accepted = 0;
  secured.length = 0;
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  port = (listener.address() as AddressInfo).port;
});
afterEach(async () => {
  for (const each of [...opened.splice(0), ...started]) each.destroy();
  await new Promise((resolve) => listener.close(resolve));
});

function limit(atOnce: number, waitMs: number): void {
  handshakes = createHandshakeLimiter({
    maxInFlight: atOnce,
    stallTimeoutMs: waitMs,
    begin: (socket) => {
      started.push(socket);
      tls.emit("connection", socket);
    },
  });
}

async function dial(): Promise<TLSSocket> {
  const before = accepted;
  const client = connect({ port, host: "127.0.0.1", ca: certificate.cert, checkServerIdentity: () => undefined });
  client.on("error", () => undefined);
  opened.push(client);
  await waitUntil("it is accepted", () => accepted > before, { everyMs: 5 });
  return client;
}

it("starts up to the limit, the oldest first, without losing received bytes", async () => {
  limit(2, 600_000);
  const clients = [await dial(), await dial(), await dial(), await dial()];
  await waitUntil("two are done", () => secured.length === 2);
  expect(started).toHaveLength(2);
  handshakes.finish(peerAddressOf(started[0] as Socket));
  handshakes.finish(peerAddressOf(started[0] as Socket));
  await waitUntil("the third is done", () => clients[2]?.authorized === true);
  expect(started).toHaveLength(3);
  started[1]?.destroy();
  await waitUntil("the fourth is done", () => clients[3]?.authorized === true);
});

it("never starts a connection whose peer closed while it waited", async () => {
  limit(1, 600_000);
  await dial();
  await waitUntil("the first is done", () => secured.length === 1);
  const impatient = await dial();
  const patient = await dial();
  const ports = (): (number | undefined)[] => started.map(({ remotePort }) => remotePort);
  const closed = impatient.localPort;
  impatient.destroy();
  await waitUntil("the listener has both connections", async () => (await connectionsOf()) === 2);
  handshakes.finish(peerAddressOf(started[0] as Socket));
  await waitUntil("the patient one is done", () => patient.authorized);
  expect(started).toHaveLength(2);
  expect(ports()).not.toContain(closed);
});

it("bounds the time of a silent peer and closes one that sends too much", async () => {
  limit(1, 200);
  const stalled = connectPlain(port, "127.0.0.1");
  opened.push(stalled);
  await waitUntil("it is accepted", () => accepted === 1);
  const client = await dial();
  const talkative = connectPlain(port, "127.0.0.1");
  opened.push(talkative);
  talkative.on("error", () => undefined);
  talkative.write(Buffer.alloc(64 << 10));
  const cut = once(talkative, "close");
  await waitUntil("the next one is done", () => client.authorized);
  await cut;
});

it("shares a site's limit among its sources without delaying other sites", async () => {
  handshakes = createHandshakeLimiter({
    maxInFlight: 4,
    maxPerSource: 3,
    stallTimeoutMs: 600_000,
    sources: (address) => [
      { name: address, factor: 1 },
      { name: address.split(".").slice(0, 3).join("."), factor: 16 },
    ],
    begin(socket) {
      started.push(socket);
      tls.emit("connection", socket);
    },
  });
  const stalled = Array.from({ length: 12 }, (_, n) =>
    connectPlain({ port, host: "127.0.0.1", localAddress: `127.0.9.${n + 1}` }),
  );
  opened.push(...stalled);
  // The start of a TLS hello that never completes.
  for (const socket of stalled) socket.on("error", () => undefined).write(Buffer.from("1603010200010001fc0303", "hex"));
  await waitUntil("the site has its places", () => accepted === 12 && started.length === 3);
  const other = await dial();
  await waitUntil("the other site is served", () => other.authorized);
  expect(started).toHaveLength(4);
});

it("never queues clients behind a load balancer", async () => {
  handshakes = createHandshakeLimiter({
    maxInFlight: 1,
    stallTimeoutMs: 600_000,
    sources: () => [],
    begin(socket) {
      started.push(socket);
      tls.emit("connection", socket);
    },
  });
  const clients = [await dial(), await dial(), await dial()];
  await waitUntil("all are done", () => clients.every(({ authorized }) => authorized));
});

function connectionsOf(): Promise<number> {
  return new Promise((resolve, reject) =>
    listener.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );
}
