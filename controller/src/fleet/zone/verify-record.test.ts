import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { AUTHORITATIVE_ANSWER, decode, encode } from "dns-packet";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createDnsServerHealth, type DnsServerHealth } from "./dns-server-health.ts";
import { createRecordVerifier, query, type RecordVerifier } from "./verify-record.ts";

const downAfterMs = 300;
/** One for each type of address. */
const queriesOfRound = 2;
const [name, address, oldAddress] = ["shop.db.example.com", "192.0.2.7", "192.0.2.6"];
let sockets: Socket[];
let logged: string[];
let health: DnsServerHealth;
let verifier: RecordVerifier;
let ending: AbortController;
/** Queries that each server (host:port) received. */
let received: Map<string, number>;
/** Milliseconds that the clock is ahead. */
let aheadMs: number;

beforeEach(() => {
  [sockets, logged, ending] = [[], [], new AbortController()];
  [received, aheadMs] = [new Map(), 0];
});
afterEach(() => {
  ending.abort();
  for (const socket of sockets) socket.close();
});

function open(servers: readonly string[]): void {
  const line = (message: string, { server }: Readonly<Record<string, unknown>> = {}) => {
    logged.push(`${message}: ${String(server)}`);
  };
  health = createDnsServerHealth({
    servers,
    monotonicMs: () => performance.now() + aheadMs,
    log: { info: line, warn: line },
    downAfterMs,
    queryIntervalMs: 50,
  });
  verifier = createRecordVerifier({ onAcknowledged: () => ({ close: () => undefined }) }, health);
}

/** A DNS server with one answer to queries for A records; without an answer it receives and is silent. */
async function startServer(answer: { address?: string; refuses?: boolean }): Promise<string> {
  const socket = createSocket("udp4");
  sockets.push(socket);
  socket.on("message", (message, from) => {
    received.set(server, (received.get(server) ?? 0) + 1);
    const { id, questions = [] } = decode(message);
    if (answer.refuses) return socket.send(encode({ type: "response", id, flags: 5, questions }), from.port);
    if (answer.address === undefined) return;
    const isA = questions[0]?.type === "A";
    const answers = isA ? [{ type: "A" as const, name, ttl: 1, data: answer.address }] : [];
    socket.send(encode({ type: "response", id, flags: AUTHORITATIVE_ANSWER, questions, answers }), from.port);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const server = `127.0.0.1:${socket.address().port}`;
  return server;
}

const unused = async () => `127.0.0.1:${(await freePorts(1))[0]}`;
const signal = () => AbortSignal.any([ending.signal, AbortSignal.timeout(60_000)]);

test("a server that does not respond delays a record for a time only, if another one has the record", async () => {
  const good = await startServer({ address });
  for (const dead of [await startServer({}), await unused()]) {
    open([good, dead]);
    await verifier.verifyRecord([dead, good], name, [address], signal());
    expect(health.values()).toEqual([
      [good, 1],
      [dead, 0],
    ]);
    expect(logged).toEqual([`dns server does not respond: ${dead}`]);
    logged = [];
  }
});

test("a server that is down in several short verifications is one that is down", async () => {
  const [good, dead] = [await startServer({ address }), await startServer({})];
  open([good, dead]);
  let tries = 0;
  for (let isVerified = false; !isVerified; tries += 1)
    isVerified = await verifier
      .verifyRecord([good, dead], name, [address], AbortSignal.any([ending.signal, AbortSignal.timeout(700)]))
      .then(
        () => true,
        () => false,
      );
  expect(health.isDown(dead)).toBe(true);
});

test.each([
  ["an old address", { address: oldAddress }],
  ["a refusal", { refuses: true }],
])("a server that responds with %s is not down, and has the record before it counts", async (_, answer) => {
  const late: { address?: string; refuses?: boolean } = { ...answer };
  const lateServer = await startServer(late);
  const servers = [await startServer({ address }), lateServer];
  open(servers);
  let isVerified = false;
  const verifying = verifier.verifyRecord(servers, name, [address], signal()).then(() => {
    isVerified = true;
  });
  // Its responses are counted before and after the time in which a silent server is down.
  for (aheadMs of [0, 4 * downAfterMs]) {
    const enough = (received.get(lateServer) ?? 0) + 3 * queriesOfRound;
    await expect.poll(() => received.get(lateServer)).toBeGreaterThanOrEqual(enough);
  }
  expect([isVerified, health.isDown(lateServer)]).toEqual([false, false]);
  late.address = address;
  late.refuses = false;
  await verifying;
  expect(logged).toEqual([]);
});

test("a record waits while all servers are silent", async () => {
  const answer: { address?: string } = {};
  const servers = [await startServer(answer), await startServer({})];
  open(servers);
  let isVerified = false;
  const verifying = verifier.verifyRecord(servers, name, [address], signal()).then(() => {
    isVerified = true;
  });
  await expect.poll(() => health.values().map(([, isUp]) => isUp)).toEqual([0, 0]);
  expect(isVerified).toBe(false);
  answer.address = address;
  await verifying;
  expect(logged).toHaveLength(3);
  expect(logged[2]).toBe(`dns server responds again: ${servers[0]}`);
});

test("servers are watched without records", async () => {
  const servers = [await startServer({ address }), await unused()];
  open(servers);
  const watching = health.watch((server) => query(server, name, ending.signal), ending.signal);
  await expect
    .poll(() => health.values())
    .toEqual([
      [servers[0], 1],
      [servers[1], 0],
    ]);
  ending.abort();
  await watching;
});
