import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Agent, request } from "node:https";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { median, ms, print, ratios, times } from "./support/figures.ts";
import { cpuMsOf, printHost } from "./support/host.ts";
import { pin, serverCore, startPeer } from "./support/peer-process.ts";
import { load } from "./support/wrk.ts";

// GET of one service through the real API port, TLS and credential included, against bare node:https with the same
// bytes and against a fastify front with a gRPC hop. Servers on one core, load on another.
const { values } = parseArgs({
  options: { pairs: { type: "string", default: "7" }, seconds: { type: "string", default: "4" } },
});
const seconds = Number(values.seconds);
const connections = 32;

printHost();
const platform = await startPlatform();
const { cert, key } = await createTestCertificate();
try {
  const services = createServices(platform);
  const { id } = await services.create("bench");
  await services.settled(id, "Running");
  const path = `/managed-services/${id}`;
  const body = await settledAnswer(async () => (await platform.rest.get(path)).text);
  const bare = await startPeer("bare-https", { key, cert, body });
  const grpc = await startPeer("grpc-hop", { body });
  const hop = await startPeer("fastify-hop", { key, cert, grpcPort: grpc.ready["port"] });
  const [controller = 0] = platform.processes().controllers;
  pin(controller, serverCore);

  const headers = { authorization: platform.owner };
  const arms = {
    holdfast: `${platform.admin.base_url}${path}`,
    bare: `https://127.0.0.1:${bare.ready["port"]}${path}`,
    hop: `https://127.0.0.1:${hop.ready["port"]}${path}`,
  };
  const measured = { holdfast: [] as number[], bare: [] as number[], hop: [] as number[] };
  // CPU of all involved processes, which is more reliable than a rate under other load.
  const cpuUs = { holdfast: [] as number[], bare: [] as number[], hop: [] as number[] };
  const pids = { holdfast: [controller], bare: [bare.pid], hop: [hop.pid, grpc.pid] };
  const cpuOf = (arm: keyof typeof pids) => pids[arm].reduce((sum, pid) => sum + cpuMsOf(pid), 0);
  const last = { holdfast: "", bare: "", hop: "" };
  // The first round is a warm-up.
  for (let pair = 0; pair <= Number(values.pairs); pair += 1) {
    for (const arm of ["holdfast", "bare", "hop"] as const) {
      const before = cpuOf(arm);
      const { requests, perSecond, p50Ms, p99Ms } = await load(arms[arm], headers, connections, seconds);
      if (pair > 0) measured[arm].push(perSecond);
      if (pair > 0) cpuUs[arm].push(((cpuOf(arm) - before) * 1_000) / requests);
      last[arm] = `p50 ${ms(p50Ms)}, p99 ${ms(p99Ms)}`;
    }
  }
  for (const arm of ["holdfast", "bare", "hop"] as const) {
    const figures = `${median(measured[arm]).toFixed(0)}/s, ${median(cpuUs[arm]).toFixed(0)} us CPU each`;
    print(`${arm} (last: ${last[arm]})`, figures);
  }
  const toHop = ratios(measured.holdfast, measured.hop);
  const toBare = ratios(measured.holdfast, measured.bare);
  print(
    "to fastify -> gRPC, median (min - max)",
    `${times(toHop.median)} (${times(toHop.min)} - ${times(toHop.max)})`,
    ">= 5x",
  );
  print(
    "to bare node:https, median (min - max)",
    `${times(toBare.median)} (${times(toBare.min)} - ${times(toBare.max)})`,
    ">= 0.6x",
  );

  print("CPU of fastify -> gRPC to Holdfast, median", times(ratios(cpuUs.hop, cpuUs.holdfast).median));
  print("CPU of bare node:https to Holdfast, median", times(ratios(cpuUs.bare, cpuUs.holdfast).median));

  for (const [arm, url] of Object.entries(arms)) {
    const trusted = arm === "holdfast" ? platform.ca : cert;
    const answered = await textOf(url, trusted, headers);
    if (answered !== body) throw new Error(`${arm} answered other bytes: ${answered}`);
  }
  const refused = await platform.rest.as(undefined).get(path);
  if (refused.status !== 401) throw new Error("a request without credential was answered");
  print("correctness", "same bytes, 401 without");
  await Promise.all([bare, grpc, hop].map((peer) => peer.end()));
  await services.delete(id);
} finally {
  await platform.remove();
}

/** A new service's health checks arrive one by one in its first seconds, so that its response grows. */
async function settledAnswer(read: () => Promise<string>): Promise<string> {
  let before = await read();
  for (;;) {
    await delay(5_000);
    const now = await read();
    if (now === before) return now;
    before = now;
  }
}

function textOf(url: string, ca: string, headers: Record<string, string>): Promise<string> {
  return new Promise((resolve, reject) => {
    const agent = new Agent({ ca });
    const outgoing = request(url, { agent, headers }, (incoming) => {
      let text = "";
      incoming.setEncoding("utf8").on("data", (part: string) => (text += part));
      incoming.once("end", () => {
        agent.destroy();
        resolve(text);
      });
    });
    outgoing.once("error", reject);
    outgoing.end();
  });
}
