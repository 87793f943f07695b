import { once } from "node:events";
import { type AddressInfo, connect as connectPlain, createServer, type Socket } from "node:net";
import { connect, createServer as createTlsServer, type TLSSocket } from "node:tls";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createTestCertificate } from "../../test/support/controller/test-certificate.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { addressOf, createHandshakes, type Handshakes } from "./handshakes.ts";

const certificate = await createTestCertificate();
const tls = createTlsServer(certificate);
const secured: TLSSocket[] = [];
tls.on("secureConnection", (socket) => secured.push(socket));

let handshakes: Handshakes;
let begun: Socket[];
let accepted: number;
let port: number;
const opened: { destroy(): void }[] = [];
const listener = createServer((socket) => {
  accepted += 1;
  socket.on("error", () => undefined);
  handshakes.enter(socket);
});

beforeEach(async () => {
  begun = [];
  accepted = 0;
  secured.length = 0;
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  port = (listener.address() as AddressInfo).port;
});
afterEach(async () => {
  for (const each of [...opened.splice(0), ...begun]) each.destroy();
  await new Promise((resolve) => listener.close(resolve));
});

function limit(atOnce: number, waitMs: number): void {
  handshakes = createHandshakes({
    atOnce,
    waitMs,
    begin: (socket) => {
      begun.push(socket);
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

it("begins so many at a time, the longest waiting first, and loses nothing that a waiting one said", async () => {
  limit(2, 600_000);
  const clients = [await dial(), await dial(), await dial(), await dial()];
  await waitUntil("two are done", () => secured.length === 2);
  expect(begun).toHaveLength(2);
  handshakes.over(addressOf(begun[0] as Socket));
  handshakes.over(addressOf(begun[0] as Socket));
  await waitUntil("the third is done", () => clients[2]?.authorized === true);
  expect(begun).toHaveLength(3);
  begun[1]?.destroy();
  await waitUntil("the fourth is done", () => clients[3]?.authorized === true);
});

it("never begins one whose peer hung up while it waited", async () => {
  limit(1, 600_000);
  await dial();
  await waitUntil("the first is done", () => secured.length === 1);
  const impatient = await dial();
  const patient = await dial();
  const ports = (): (number | undefined)[] => begun.map(({ remotePort }) => remotePort);
  const gone = impatient.localPort;
  impatient.destroy();
  await waitUntil("the listener knows", async () => (await connectionsOf()) === 2);
  handshakes.over(addressOf(begun[0] as Socket));
  await waitUntil("the patient one is done", () => patient.authorized);
  expect(begun).toHaveLength(2);
  expect(ports()).not.toContain(gone);
});

it("has a peer that says nothing hold the others up for a while only, and cuts one that says too much", async () => {
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

it("has the sources of a site share its places, and no other site wait for them", async () => {
  handshakes = createHandshakes({
    atOnce: 4,
    perSource: 3,
    waitMs: 600_000,
    sources: (address) => [
      { name: address, factor: 1 },
      { name: address.split(".").slice(0, 3).join("."), factor: 16 },
    ],
    begin(socket) {
      begun.push(socket);
      tls.emit("connection", socket);
    },
  });
  const stalled = Array.from({ length: 12 }, (_, n) =>
    connectPlain({ port, host: "127.0.0.1", localAddress: `127.0.9.${n + 1}` }),
  );
  opened.push(...stalled);
  // The beginning of a first message of TLS, of which the rest never comes.
  for (const socket of stalled) socket.on("error", () => undefined).write(Buffer.from("1603010200010001fc0303", "hex"));
  await waitUntil("the site has its places", () => accepted === 12 && begun.length === 3);
  const other = await dial();
  await waitUntil("the other site is served", () => other.authorized);
  expect(begun).toHaveLength(4);
});

it("has nobody wait who comes through a balancer", async () => {
  handshakes = createHandshakes({
    atOnce: 1,
    waitMs: 600_000,
    sources: () => [],
    begin(socket) {
      begun.push(socket);
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
