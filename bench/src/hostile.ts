import { randomUUID } from "node:crypto";
import { connect } from "node:http2";
import { parseArgs } from "node:util";
import { basic } from "@holdfast/testing/api/rest.ts";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { framed } from "@holdfast/testing/hostile/grpc-bodies.ts";
import { type H2Caller, type H2Request, openH2 } from "@holdfast/testing/hostile/h2-caller.ts";
import { ms, percentile, print, times } from "./support/figures.ts";
import { cpuMsOf, memoryOf, printHost } from "./support/host.ts";

// Longest block of a controller's event loop by any single request, and the effect on others when one credential
// floods.
const { values } = parseArgs({
  options: { seconds: { type: "string", default: "10" }, rounds: { type: "string", default: "20" } },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
/** Number of requests of each kind without a credential, and of concurrently open ones. */
const anonymous = 300;
const slow = 500;
const json = { "content-type": "application/json" };

printHost();
const platform = await startPlatform({
  environment: { HOLDFAST_RATE_READS: "100", HOLDFAST_RATE_CHANGES: "20", HOLDFAST_RATE_SOURCE: "0" },
});
const [honest, hostile] = [
  openH2(platform.admin.base_url, platform.ca, 1),
  openH2(platform.admin.base_url, platform.ca),
];
try {
  await waitUntil("the history answers", async () => (await platform.rest.get("/events?limit=1")).status === 200);
  const flooder = { authorization: await newKey("flooder") };
  const other = { authorization: await newKey("other") };

  const idle = await probed(() => new Promise((resolve) => setTimeout(resolve, 1_000)));
  print("a probe beside nothing, longest", ms(Math.max(...idle)));
  for (const [label, request] of Object.entries(worst())) {
    const late: number[] = [];
    let sender = flooder;
    for (let round = 0; round < rounds; round += 1) {
      // Each request must pass the rate limit: a refused one costs little.
      if (round % 5 === 0) sender = { authorization: await newKey(`sender ${label} ${round}`) };
      const each = await probed(() => hostile.send({ ...request, headers: { ...sender, ...request.headers } }));
      late.push(Math.max(...each));
      // Refills the token bucket.
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    print(
      `event loop late by ${label}, p50 (longest)`,
      `${ms(percentile(late, 0.5))} (${ms(Math.max(...late))})`,
      "<= 50 ms",
    );
  }

  const controller = platform.processes().controllers[0];
  if (controller === undefined) throw new Error("there is no controller");
  for (const [label, request] of Object.entries(uncredited())) {
    const before = cpuMsOf(controller);
    for (let n = 0; n < anonymous; n += 1) await hostile.send(request);
    const cpu = (cpuMsOf(controller) - before) / anonymous;
    print(`CPU of ${label}, without a credential`, ms(cpu), "<= 5 ms");
  }
  print("memory of one that sends its body slowly", await slowBodies(controller), "<= 64 KiB");

  const without = await asOther(other);
  const until = Date.now() + seconds * 1_000;
  const floods = Array.from({ length: 64 }, () => flood(flooder, until));
  const beside = await asOther(other);
  const answers = (await Promise.all(floods)).flat();
  const [before, during] = [percentile(without, 0.99), percentile(beside, 0.99)];
  print("another caller's GET, p99, without a flood", ms(before));
  print("the same while one credential floods", ms(during), "<= 50 ms");
  print("ratio", times(during / before), "<= 2x");
  const limited = answers.filter((status) => status === 429).length;
  print("requests of the flood a second, those with 429", `${Math.round(answers.length / seconds)}, ${limited}`);
  if (limited === 0) throw new Error("the flood was no flood");
} finally {
  for (const each of [honest, hostile]) each.close();
  await platform.remove();
}

async function newKey(name: string): Promise<string> {
  const scopes = ["services:read", "services:write", "webhooks:read"];
  const { json: made } = await platform.rest.post<{ id: string; secret: string }>("/api-keys", { name, scopes });
  return basic(made.id, made.secret);
}

/** The most expensive bodies of legal size. */
function worst(): Readonly<Record<string, H2Request>> {
  const post = (body: string): H2Request => ({ verb: "POST", path: "/managed-services", headers: json, body });
  const call = (body: Buffer): H2Request => ({
    verb: "POST",
    path: "/holdfast.v1.ManagedServiceService/CreateManagedService",
    headers: { "content-type": "application/grpc+proto", te: "trailers" },
    body: framed(body),
  });
  const filled = (entry: (n: number) => string) => {
    const parts: string[] = [];
    for (let size = 100; size < 250_000; size += (parts.at(-1)?.length ?? 0) + 1) parts.push(entry(parts.length));
    return parts.join(",");
  };
  return {
    "the longest list": post(`{"allowed_cidrs":[${filled((n) => `"10.${n >> 8}.${n & 255}.0/24"`)}]}`),
    "most unknown keys": post(`{${filled((n) => `"k${n}":0`)}}`),
    "one key over and over": post(`{${filled(() => '"name":""')}}`),
    "the longest map": post(`{"parameters":{${filled((n) => `"p${n}":"v"`)}}}`),
    "most values": post(`{"name":[${filled(() => "0")}]}`),
    "most unknown fields, over gRPC": call(Buffer.alloc(250_000, Buffer.from([0xc0, 0x3e, 1]))),
    "the longest map, over gRPC": call(Buffer.alloc(250_000, Buffer.from([0x4a, 0]))),
  };
}

/** The largest bodies without a credential: to a method of users, and to public methods. */
function uncredited(): Readonly<Record<string, H2Request>> {
  const { "the longest list": list, "most unknown fields, over gRPC": fields } = worst();
  if (list === undefined || fields === undefined) throw new Error("the bodies have other names");
  const unknown = Array.from({ length: 900 }, (_, n) => `"k${n}":0`).join(",");
  return {
    "the longest list": list,
    "most unknown fields, over gRPC": fields,
    "a wrong secret": { ...list, headers: { ...json, authorization: basic(randomUUID(), "wrong") } },
    "8 KiB of unknown keys, to a public method": {
      verb: "POST",
      path: "/users/setup",
      headers: { ...json, "idempotency-key": "k" },
      body: `{${unknown}}`,
    },
  };
}

/** Resident memory of a controller for each of many open requests whose bodies arrive byte by byte. */
async function slowBodies(controller: number): Promise<string> {
  const before = memoryOf(controller).rssMb;
  const sessions = Array.from({ length: slow / 50 }, () => connect(platform.admin.base_url, { ca: platform.ca }));
  const open = sessions.flatMap((session) =>
    Array.from({ length: 50 }, () => {
      const stream = session.request({ ":method": "POST", ":path": "/users/setup", ...json, "content-length": "8000" });
      stream.on("error", () => undefined);
      stream.write("{");
      return stream;
    }),
  );
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const eachMb = (memoryOf(controller).rssMb - before) / open.length;
  for (const session of sessions) session.destroy();
  return `${(eachMb * 1_024).toFixed(1)} KiB`;
}

/** Durations of trivial requests during the work, milliseconds. */
async function probed(work: () => Promise<unknown>): Promise<number[]> {
  const took: number[] = [];
  let finished = false;
  const done = work().finally(() => {
    finished = true;
  });
  while (!finished) took.push(await timed(honest, { verb: "GET", path: "/healthz" }));
  await done;
  return took;
}

async function timed(caller: H2Caller, request: H2Request): Promise<number> {
  const began = performance.now();
  await caller.send(request);
  return performance.now() - began;
}

/** 50 reads a second, half of the limit. */
async function asOther(headers: Readonly<Record<string, string>>): Promise<number[]> {
  const took: number[] = [];
  for (let n = 0; n < seconds * 50; n += 1) {
    const next = new Promise((resolve) => setTimeout(resolve, 20));
    took.push(await timed(honest, { verb: "GET", path: "/managed-services", headers }));
    await next;
  }
  return took;
}

async function flood(headers: Readonly<Record<string, string>>, until: number): Promise<number[]> {
  const statuses: number[] = [];
  const [, list] = Object.values(worst());
  while (Date.now() < until) {
    const read = { verb: "GET", path: `/managed-services/${randomUUID()}`, headers };
    const change = list === undefined ? read : { ...list, headers: { ...headers, ...list.headers } };
    for (const request of [read, read, read, change]) statuses.push((await hostile.send(request)).status);
  }
  return statuses;
}
