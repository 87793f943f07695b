import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "@holdfast/common/log.ts";
import { directoryKey, storeBucket } from "@holdfast/common/objects/signed-url.ts";
import { createUrlSigner } from "@holdfast/controller/kernel/objects/url-signer.ts";
import { type StoreServer, startStoreServer } from "@holdfast/store/store-server.ts";
import { Agent, request } from "undici";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

/** The port of the store's process, with a client that has no signed URL. */
let directory: string;
let server: StoreServer;
let ca: string;
const key = directoryKey(randomBytes(32).toString("hex"));
const sockets: Socket[] = [];
const agents: Agent[] = [];
const clock = { nowMs: 0 };

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-store-"));
  const { cert, key: privateKey } = await createTestCertificate();
  ca = cert;
  server = await startStoreServer({
    directory,
    key,
    host: "127.0.0.1",
    port: 0,
    identity: { certificate: cert, key: privateKey },
    now: Date.now,
    monotonicMs: () => clock.nowMs,
    log: silentLog,
  });
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await Promise.all(agents.map((agent) => agent.destroy()));
  await server?.close();
  await rm(directory, { recursive: true, force: true });
});

function agentFrom(localAddress: string): Agent {
  const agent = new Agent({ localAddress, allowH2: false, connections: 8, connect: { ca } });
  agents.push(agent);
  return agent;
}

/** Stores or reads an object as a machine's agent does. */
async function use(dispatcher: Agent, method: "PUT" | "GET", object: string): Promise<number> {
  const signer = createUrlSigner({
    base: `https://127.0.0.1:${server.port}/${storeBucket}`,
    key,
    endpoint: { addresses: async () => ["127.0.0.1"], port: server.port, trustBundle: () => ca },
    serverSideEncryption: true,
    now: Date.now,
  });
  const { url, headers } = await signer.sign({ method, key: object }, 3_600);
  const body = method === "PUT" ? "what an engine has" : null;
  const response = await request(url, { dispatcher, method, headers, body });
  await response.body.dump();
  return response.statusCode;
}

test("silent connections of one source over the limit are closed, and machines can store", async () => {
  for (let n = 0; n < 1_100; n += 1) {
    const socket = connect({ host: "127.0.0.1", port: server.port, localAddress: "127.0.0.66" });
    sockets.push(socket);
    socket.on("error", () => undefined).resume();
    await once(socket, "connect");
  }
  expect(await use(agentFrom("127.0.0.1"), "PUT", "a/1")).toBe(200);
  await waitUntil("the oldest are closed", () => sockets.filter(({ destroyed }) => destroyed).length >= 100);
  expect(sockets.slice(-50).some(({ destroyed }) => destroyed)).toBe(false);
});

test("invalid signatures of one source are rate-limited, and a valid one is never delayed", async () => {
  const outsider = agentFrom("127.0.0.67");
  const guess = async () => {
    const response = await request(`https://127.0.0.1:${server.port}/${storeBucket}/a/1`, { dispatcher: outsider });
    await response.body.dump();
    return response.statusCode;
  };
  const statuses = await Promise.all(Array.from({ length: 700 }, guess));
  expect(statuses.filter((status) => status === 403)).toHaveLength(500);
  expect(statuses.filter((status) => status === 503)).toHaveLength(200);
  const machine = agentFrom("127.0.0.1");
  for (let times = 0; times < 6; times += 1) {
    const read = await Promise.all(Array.from({ length: 100 }, () => use(machine, "GET", "a/1")));
    expect(new Set(read)).toEqual(new Set([200]));
  }
  clock.nowMs += 1_000;
  expect(await guess()).toBe(403);
});
