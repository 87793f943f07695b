import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { basic } from "@holdfast/testing/api/rest.ts";
import { openEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { framed } from "@holdfast/testing/hostile/grpc-bodies.ts";
import { type H2Answer, type H2Caller, type H2Request, openH2 } from "@holdfast/testing/hostile/h2-caller.ts";

/** `npm run faults -- --hostile` runs many rounds. */
const rounds = Number(process.env["HOLDFAST_TEST_CROWDS"] ?? 1);
const crowd = 1_000;
const refusalBytes = 16 * 1024;
/** Limits of the bytes written per request of the crowd, and of a controller's memory for such a flood. */
const etcdBytes = 8 << 20;
const memoryBytes = 256 << 20;
/** The defaults; other suites have no rate limit. */
const environment = {
  HOLDFAST_RATE_READS: "100",
  HOLDFAST_RATE_CHANGES: "20",
  HOLDFAST_RATE_MESSAGES: "500",
  HOLDFAST_RATE_SOURCE: "50",
  HOLDFAST_RATE_BYTES: String(2 ** 26),
  HOLDFAST_FOLLOWERS: "20",
};

interface Key {
  readonly id: string;
  readonly secret: string;
}

let platform: Platform;
let caller: H2Caller;
/** Ids of a new key for each crowd: a key over its rate would be rejected immediately the next time. */
const keys: string[] = [];

beforeAll(async () => {
  platform = await startPlatform({ environment });
  await waitUntil("the history answers", async () => (await platform.rest.get("/events?limit=1")).status === 200);
  caller = openH2(platform.admin.base_url, platform.ca);
});
afterAll(async () => {
  caller?.close();
  await platform?.remove();
});

async function newKey(): Promise<string> {
  const scopes = ["services:read", "services:write", "webhooks:read", "webhooks:write", "audit:read", "keys:write"];
  const { status, json } = await platform.rest.post<Key>("/api-keys", { name: `crowd-${keys.length}`, scopes });
  expect(status).toBe(201);
  keys.push(json.id);
  return basic(json.id, json.secret);
}

/** Bytes of all current keys and values, except the outbox. */
async function storedBytes(): Promise<number> {
  const etcd = openEtcd(platform.directory);
  try {
    const { kvs } = await etcd.raw.getAll().prefix("").exec();
    return kvs.reduce((sum, { key, value }) => {
      return String(key).includes("/outbox/") ? sum : sum + key.length + value.length;
    }, 0);
  } finally {
    etcd.raw.close();
  }
}

function memoryOf(pid: number): number {
  const [, kibibytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kibibytes) * 1_024;
}

const controllerMemory = () => platform.processes().controllers.reduce((sum, pid) => sum + memoryOf(pid), 0);

/** Entries of the audit log with the actor. */
async function audited(actor: string): Promise<number> {
  let count = 0;
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query = new URLSearchParams({ actor, limit: "200", ...(cursor !== "" && { cursor }) });
    // Reads of the audit log are expensive: counting many entries has to remain within their rate as well.
    const page = await waitUntil("a page of the audit log is answered", async () => {
      const response = await platform.rest.get<{ entries: unknown[]; next_cursor: string | null }>(
        `/audit-log?${query}`,
      );
      return response.status === 200 && response.json;
    });
    count += page.entries.length;
    cursor = page.next_cursor;
  }
  return count;
}

const json = { "content-type": "application/json" };

/** One RPC of each kind, with the statuses that a thousand of them may have. */
const kinds: Readonly<
  Record<string, { statuses: readonly number[]; newRequest: () => H2Request; isAnonymous?: true }>
> = {
  "a list": { statuses: [200, 429], newRequest: () => ({ verb: "GET", path: "/managed-services" }) },
  "an absent object": {
    statuses: [404, 429],
    newRequest: () => ({ verb: "GET", path: `/managed-services/${randomUUID()}` }),
  },
  "an expensive read": { statuses: [200, 429, 503], newRequest: () => ({ verb: "GET", path: "/audit-log" }) },
  "a change under a separate key": {
    // The quota of webhooks, concurrent changes of others, and the rate limit.
    statuses: [201, 409, 429, 503],
    newRequest: () => ({
      verb: "POST",
      path: "/webhooks",
      headers: { ...json, "idempotency-key": randomUUID() },
      body: JSON.stringify({ url: "https://1.1.1.1/" }),
    }),
  },
  "a repeated change": {
    statuses: [201, 409, 429, 503],
    newRequest: () => ({
      verb: "POST",
      path: "/webhooks",
      headers: { ...json, "idempotency-key": `again-${keys.length}` },
      body: JSON.stringify({ url: "https://1.1.1.1/" }),
    }),
  },
  "a rejected change": {
    statuses: [400, 429],
    newRequest: () => ({
      verb: "POST",
      path: "/managed-services",
      headers: { ...json, "idempotency-key": randomUUID() },
      body: JSON.stringify({ name: "" }),
    }),
  },
  "a deletion of nothing": {
    statuses: [404, 429],
    newRequest: () => ({ verb: "DELETE", path: `/webhooks/${randomUUID()}` }),
  },
  "a call of gRPC": {
    statuses: [200],
    newRequest: () => ({
      verb: "POST",
      path: "/holdfast.v1.ManagedServiceService/ListManagedServices",
      headers: { "content-type": "application/grpc+proto", te: "trailers" },
      body: framed(Buffer.alloc(0)),
    }),
  },
  "a request without a credential": {
    statuses: [401, 429],
    isAnonymous: true,
    newRequest: () => ({ verb: "GET", path: "/managed-services" }),
  },
  "a password without a credential": {
    // A store that is overloaded responds with 503.
    statuses: [400, 429, 503],
    isAnonymous: true,
    newRequest: () => ({
      verb: "POST",
      path: "/users/setup",
      headers: { ...json, "idempotency-key": randomUUID() },
      body: JSON.stringify({ token: "hfu_x", password: "correct horse battery" }),
    }),
  },
};

for (let round = 0; round < rounds; round += 1)
  test.each(Object.entries(kinds))(
    `a thousand concurrent requests of %s`,
    async (_, { statuses, newRequest, isAnonymous }) => {
      const headers = isAnonymous === true ? {} : { authorization: await newKey() };
      const [stored, memory] = [await storedBytes(), controllerMemory()];
      const responses = await Promise.all(
        Array.from({ length: crowd }, () => {
          const request = newRequest();
          return caller.send({ ...request, headers: { ...headers, ...request.headers } });
        }),
      );
      expect(new Set(responses.map(({ status }) => status)).difference(new Set(statuses))).toEqual(new Set());
      const large = responses.filter(({ status, bytes }: H2Answer) => status >= 400 && bytes > refusalBytes);
      expect(large).toEqual([]);
      expect((await storedBytes()) - stored).toBeLessThan(etcdBytes);
      expect(controllerMemory() - memory).toBeLessThan(memoryBytes);
      // Another caller is served, and no unexpected error was logged.
      expect((await platform.rest.get("/managed-services")).status).toBe(200);
      expect(platform.errorBodies.filter((body) => body.includes('"status":500'))).toEqual([]);
    },
  );

test("thousands of requests for a webhook create twenty, and rejections do not fill the audit log", async () => {
  const { json: listed } = await platform.rest.get<{ webhooks: unknown[] }>("/webhooks?limit=200");
  expect(listed.webhooks.length).toBeLessThanOrEqual(20);
  const refused = keys[Object.keys(kinds).indexOf("a deletion of nothing")];
  await waitUntil("refusals are in the audit log", async () => (await audited(`api_key:${refused}`)) >= 100);
  // 100 a minute of each, over a minute or two, plus the executed ones.
  for (const id of keys) expect([id, (await audited(`api_key:${id}`)) <= crowd / 3]).toEqual([id, true]);
});

test("calls that are canceled midway release their limits, over REST and gRPC", async () => {
  const authorization = await newKey();
  const expensive: H2Request = { verb: "GET", path: "/audit-log?limit=200", headers: { authorization } };
  const call: H2Request = {
    verb: "POST",
    path: "/holdfast.v1.AuditService/ListAuditLog",
    headers: { authorization, "content-type": "application/grpc+proto", te: "trailers" },
    body: framed(Buffer.alloc(0)),
  };
  const half: H2Request & { length: number } = {
    verb: "POST",
    path: "/webhooks",
    headers: { ...json, authorization, "idempotency-key": "half" },
    body: '{"url":',
    length: 1_000,
  };
  await Promise.all(Array.from({ length: 60 }, () => Promise.all([expensive, call, half].map(caller.cancel))));
  // A credential has 16 concurrent expensive reads: the reads of canceled calls are released.
  const otherKey = await newKey();
  const isFree = async () => {
    statuses = (await Promise.all(Array.from({ length: 16 }, () => caller.send(expensive)))).map(
      ({ status }) => status,
    );
    return statuses.every((status) => status === 200);
  };
  let statuses: number[] = [];
  const describe = () => statuses.join();
  // The rate that sixteen of them use recovers during this time.
  await waitUntil("sixteen are answered concurrently", isFree, { everyMs: 1_000, describe });
  expect((await caller.send({ ...expensive, headers: { authorization: otherKey } })).status).toBe(200);
});

test("a hundred handshakes that stall keep no other client out", async () => {
  const { hostname, port } = new URL(platform.admin.base_url);
  const half = Buffer.from("1603010200010001fc0303", "hex");
  const sockets = Array.from({ length: 100 }, () => {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on("error", () => undefined).resume();
    socket.write(half);
    return socket;
  });
  const newClient = openH2(platform.admin.base_url, platform.ca, 1);
  try {
    const headers = { authorization: platform.owner };
    expect((await newClient.send({ verb: "GET", path: "/managed-services", headers })).status).toBe(200);
    expect(sockets.filter(({ destroyed }) => !destroyed).length).toBeGreaterThan(0);
  } finally {
    newClient.close();
    for (const socket of sockets) socket.destroy();
  }
});
