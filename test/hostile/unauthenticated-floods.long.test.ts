import { createSocket } from "node:dgram";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { connect as connectH2 } from "node:http2";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { EnrollRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import dnsPacket from "dns-packet";
import pg from "pg";
import { Agent, request } from "undici";
import { afterAll, beforeAll, expect, test } from "vitest";
import { basic } from "@holdfast/testing/api/rest.ts";
import { openEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { logFiles } from "@holdfast/testing/platform/platform-logs.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { framed } from "@holdfast/testing/hostile/grpc-bodies.ts";

/**
 * Floods each endpoint of each process that callers without a credential reach, and counts the traces. Issuers:
 * `issuer-floods`.
 */
let platform: Platform;
let history: pg.Client;

const floodOf = 1_000;
const sourcesOfMany = 100;

beforeAll(async () => {
  const environment = { HOLDFAST_RATE_SOURCE: "50" };
  platform = await startPlatform({ environment });
  await waitUntil("the history answers", async () => (await platform.rest.get("/events?limit=1")).status === 200);
  history = new pg.Client({
    host: "127.0.0.1",
    port: portOf("history"),
    user: "holdfast",
    database: "holdfast",
    password: readFileSync(join(platform.directory, "keys", "history-password"), "utf8").trim(),
    ssl: { rejectUnauthorized: false },
  });
  await history.connect();
});
afterAll(async () => {
  await history?.end();
  await platform?.remove();
});

function portOf(name: string): number {
  return JSON.parse(readFileSync(join(platform.directory, "installation.json"), "utf8")).ports[name];
}

/** Address of the processes that serve machines. */
function hostOfMachines(): string {
  return platform.admin.dns_server.split(":")[0] ?? "";
}

interface Traces {
  /** Keys in etcd. */
  readonly keys: number;
  /** Lines in all logs. */
  readonly lines: number;
  /** Bytes in the directories of the data planes. */
  readonly bytes: number;
  readonly memory: number;
}

async function tracesNow(): Promise<Traces> {
  const etcd = openEtcd(platform.directory);
  const keys = await etcd.raw.getAll().prefix("").keys();
  etcd.raw.close();
  const lines = logFiles(platform.directory).reduce(
    (sum, file) => sum + readFileSync(file, "utf8").split("\n").length,
    0,
  );
  const bytes = ["objects", "store", "issuer", "dns", "inference"].reduce((sum, name) => sum + bytesBelow(name), 0);
  const { controllers, dns, issuer, store, inference } = platform.processes();
  const pids = [...controllers, dns, issuer, store, inference].filter((pid) => pid !== undefined);
  return {
    keys: keys.filter((key) => !String(key).includes("/outbox/")).length,
    lines,
    bytes,
    memory: pids.reduce((sum, pid) => sum + memoryOf(pid), 0),
  };
}

function bytesBelow(name: string): number {
  const directory = join(platform.directory, name);
  return readdirSync(directory, { recursive: true }).reduce((sum, file) => {
    // Files may be created and deleted during the count.
    const found = statSync(join(directory, String(file)), { throwIfNoEntry: false });
    return sum + (found?.size ?? 0);
  }, 0);
}

function memoryOf(pid: number): number {
  const [, kibibytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kibibytes) * 1_024;
}

/** A request to a process, and the statuses that it may have. */
interface Endpoint {
  readonly statuses: readonly number[];
  /** A thousand when absent. */
  readonly times?: number;
  /** Maximum number of audit log entries of a flood; absent: 0. */
  readonly rows?: number;
  /** Limit of the log lines; a few that are not of the flood when absent. */
  readonly lines?: number;
  send(from: Source, at: number): Promise<number>;
}

/** Connections from one address. */
interface Source {
  readonly address: string;
  readonly agent: Agent;
}

interface Http {
  readonly method?: "GET" | "POST" | "PUT";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function http(
  { agent }: Source,
  url: string,
  { method = "GET", headers = {}, body }: Http = {},
): Promise<number> {
  const response = await request(url, { dispatcher: agent, method, headers, ...(body !== undefined && { body }) });
  await response.body.dump();
  return response.statusCode;
}

const api = (path: string) => `${platform.admin.base_url}${path}`;
const inference = (path: string) => `https://127.0.0.1:${portOf("inference")}${path}`;
const store = (path: string) => `https://${hostOfMachines()}:${portOf("store")}${path}`;
const issuer = (path: string) => `https://${hostOfMachines()}:${portOf("issuer")}${path}`;
const json = { "content-type": "application/json" };
/** Rejections of all sources together, plus the entries that count omitted ones. */
const refusals = 520;
/** Lines of one message: the first of a flood, and one a second. */
const bounded = 260;

async function dnsOverUdp({ address }: Source, at: number): Promise<number> {
  const [host = "", port] = platform.admin.dns_server.split(":");
  const query = dnsPacket.encode({
    type: "query",
    id: 1 + at,
    questions: [{ type: "A", name: `n${at}.local.holdfast.test` }],
  });
  const socket = createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, address, () => resolve()));
  await new Promise((resolve) => socket.send(query, Number(port), host, resolve));
  socket.close();
  return 0;
}

/** grpc-status of an enrollment with an unknown token; 99 for a closed connection. */
function enroll({ address }: Source, at: number): Promise<number> {
  const session = connectH2(`https://${hostOfMachines()}:${portOf("agents")}`, {
    rejectUnauthorized: false,
    localAddress: address,
  } as Parameters<typeof connectH2>[1]);
  const message = create(EnrollRequestSchema, { machineId: `m-${at}`, installationId: "other", token: `t${at}` });
  return new Promise((resolve) => {
    let status = 99;
    session.on("error", () => undefined);
    session.once("close", () => resolve(status));
    const stream = session.request({
      ":method": "POST",
      ":path": "/holdfast.agent.v1.EnrollmentService/Enroll",
      "content-type": "application/grpc",
      te: "trailers",
    });
    const note = (fields: Readonly<Record<string, unknown>>) => {
      if (fields["grpc-status"] !== undefined) status = Number(fields["grpc-status"]);
    };
    stream
      .on("response", note)
      .on("trailers", note)
      .on("error", () => undefined)
      .on("close", () => session.destroy());
    stream.resume().end(framed(Buffer.from(toBinary(EnrollRequestSchema, message))));
  });
}

const forms: Readonly<Record<string, Endpoint>> = {
  "API: a read without a credential": { statuses: [401], send: (from) => http(from, api("/managed-services")) },
  "API: a change without a credential": {
    statuses: [401, 429],
    rows: refusals,
    send: (from) => http(from, api("/webhooks"), { method: "POST", headers: json, body: "{}" }),
  },
  "API: a wrong key": {
    statuses: [401],
    send: (from, at) => http(from, api("/me"), { headers: { authorization: basic(`hfk_${at}`, `s${at}`) } }),
  },
  "API: a wrong password": {
    statuses: [401, 429],
    // Each request costs a slow hash, one at a time.
    times: 150,
    send: (from, at) => http(from, api("/me"), { headers: { authorization: basic(`u${at}`, `password ${at}`) } }),
  },
  "API: a token that sets no password up": {
    statuses: [400, 429, 503],
    rows: refusals,
    send: (from, at) =>
      http(from, api("/users/setup"), {
        method: "POST",
        headers: { ...json, "idempotency-key": `k-${at}` },
        body: JSON.stringify({ token: `hfu_${at}`, password: "correct horse battery" }),
      }),
  },
  "API: a link of a mail": {
    statuses: [404, 429],
    send: (from, at) => http(from, api(`/channel-confirmation?channel=${at}&token=${at}`), { method: "POST" }),
  },
  "API: a page": { statuses: [200, 429], send: (from) => http(from, api("/docs")) },
  "API: the schema of projects": { statuses: [200, 429], send: (from) => http(from, api("/schemas/project.json")) },
  "API: health": { statuses: [200, 429], send: (from) => http(from, api("/healthz")) },
  "inference: no key": { statuses: [401], send: (from) => http(from, inference("/v1/models")) },
  "inference: a wrong key": {
    statuses: [401],
    send: (from, at) =>
      http(from, inference("/v1/chat/completions"), {
        method: "POST",
        headers: {
          ...json,
          authorization: `Bearer inf_00000000-0000-4000-8000-00000000000${at % 10}_${"x".repeat(32)}`,
        },
        body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "x".repeat(4_000) }] }),
      }),
  },
  "inference: a path that is not there": { statuses: [404], send: (from, at) => http(from, inference(`/v1/${at}`)) },
  "store: a URL that is not signed": {
    statuses: [403, 503],
    // Each request closes its connection.
    times: 400,
    lines: bounded,
    send: (from, at) => http(from, store(`/objects/${at}`), { method: "PUT", body: "x" }),
  },
  "store: a signature that is not good": {
    statuses: [403, 503],
    lines: bounded,
    send: (from, at) =>
      http(
        from,
        store(
          `/objects/${at}?X-Amz-Signature=${"a".repeat(64)}&X-Amz-Date=20990101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host`,
        ),
      ),
  },
  "issuer: a name of no app": { statuses: [421], send: (from) => http(from, issuer("/authorize")) },
  "agents: an enrollment": {
    // Rejected, over the rate limit, or a closed connection; each has a separate handshake.
    times: 400,
    statuses: [3, 5, 7, 8, 9, 16, 99],
    lines: bounded,
    send: enroll,
  },
  "DNS: a name that is not there": { statuses: [0], send: dnsOverUdp },
};

const cases = Object.entries(forms).flatMap(([name, form], at) => [
  { name, form, crowd: "one source", network: `127.0.${60 + at}`, sources: 1 },
  { name, form, crowd: "many sources", network: `127.0.${100 + at}`, sources: sourcesOfMany },
]);

test.each(cases)("a flood by $crowd leaves no traces: $name", async ({ form, network, sources }) => {
  const before = await tracesNow();
  const open = Array.from({ length: sources }, (_, at) => {
    const address = `${network}.${1 + at}`;
    const connect = { rejectUnauthorized: false };
    return { address, agent: new Agent({ localAddress: address, allowH2: false, connections: 4, connect }) };
  });
  const statuses = new Set<number>();
  let at = 0;
  await Promise.all(
    Array.from({ length: 25 }, async () => {
      while (at < (form.times ?? floodOf)) {
        const source = open[(at += 1) % sources];
        if (source !== undefined) statuses.add(await form.send(source, at));
      }
    }),
  );
  await Promise.all(open.map(({ agent }) => agent.destroy()));
  expect(statuses.difference(new Set(form.statuses))).toEqual(new Set());
  const after = await tracesNow();
  expect(after.keys - before.keys).toBeLessThan(10);
  expect(after.lines - before.lines).toBeLessThan(form.lines ?? 20);
  expect(after.bytes - before.bytes).toBeLessThan(64 << 10);
  expect(after.memory - before.memory).toBeLessThan(128 << 20);
});

test("the audit log has a bounded number of rejections of each flood", async () => {
  const countOf = async (network: string) => {
    const { rows } = await history.query<{ count: number }>(
      "SELECT count(*)::int AS count FROM audit WHERE source LIKE $1",
      [`${network}.%`],
    );
    return rows[0]?.count ?? -1;
  };
  const counts = new Map<string, number>();
  await waitUntil("refusals are in the history", async () => {
    for (const { network } of cases) counts.set(network, await countOf(network));
    return cases.filter(({ form }) => form.rows !== undefined).some(({ network }) => (counts.get(network) ?? 0) > 0);
  });
  const beyond = cases.filter(({ form, network }) => (counts.get(network) ?? 0) > (form.rows ?? 0));
  expect(beyond.map(({ name, crowd }) => `${crowd}: ${name}`)).toEqual([]);
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
  // Rejections of all sources together, during the minutes of this suite, plus the entries that count omitted ones.
  expect(all).toBeLessThan(1_000);
});
