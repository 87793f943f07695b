import { rm } from "node:fs/promises";
import type { LookupFunction } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { frontPort } from "@holdfast/controller/app/hosting/hosting.ts";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import type { App } from "@holdfast/sdk/index.ts";
import { createHostedApps, pushAppImage } from "@holdfast/testing/platform/hosted-apps.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { programDirectory } from "@holdfast/testing/platform/platform-software.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { createAppImages } from "@holdfast/testing/servers/app-images.ts";
import { Pool } from "undici";
import { startBareHaproxy } from "./peers/bare-haproxy.ts";
import { median, ms, percentile, print, ratios, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

// Hosted apps: requests at a constant rate through a deployment; the ingress beside a bare HAProxy before the same
// machine (as root).
const { values } = parseArgs({
  options: {
    only: { type: "string", default: "switch,ingress" },
    rate: { type: "string", default: "2000" },
    requests: { type: "string", default: "50000" },
    pairs: { type: "string", default: "5" },
  },
});
const only = new Set(values.only.split(","));
const [rate, requests, pairs] = [Number(values.rate), Number(values.requests), Number(values.pairs)];
const clients = 16;

/** The ingress listens at the loopback address, and this host's resolver does not have its names. */
const lookup: LookupFunction = (_name, options, callback) =>
  options.all === true ? callback(null, [{ address: "127.0.0.1", family: 4 }]) : callback(null, "127.0.0.1", 4);

printHost();
const node = findImage(imagesDirectory(process.env), "apps");
if (node === undefined) throw new Error("there is no node image of apps: run holdfast images make apps");
const directory = programDirectory("holdfast-push");
const [platform, images] = await Promise.all([startPlatform(), createAppImages(directory)]);
const apps = createHostedApps(platform);
try {
  for (const tag of ["1", "2"]) await pushAppImage(platform, images, { name: "shop", tag }, { NOTE: tag });
  const app = await apps.createRunning("shop", { image_ref: "shop:1", drain_seconds: 5 });
  if (only.has("switch")) await measureSwitch(app);
  if (only.has("ingress")) await measureIngress(app);
} finally {
  await platform.remove();
  await rm(directory, { recursive: true, force: true });
}

function openPool(origin: string, ca: string, connections: number): Pool {
  return new Pool(origin, { connections, connect: { ca, lookup } });
}

interface Load {
  readonly latencies: number[];
  readonly failures: string[];
  /** The release of the last response. */
  readonly last: string;
}

/** Sends requests at a constant rate, whether or not the ones before have a response; latencies are from their time. */
async function loadAt(pool: Pool, count: number): Promise<Load> {
  const latencies: number[] = [];
  const failures: string[] = [];
  let last = "";
  const startedAt = performance.now();
  const send = async (dueAt: number) => {
    try {
      const response = await pool.request({ method: "GET", path: "/" });
      const { note } = (await response.body.json()) as { note: string };
      if (response.statusCode !== 200) throw new Error(String(response.statusCode));
      last = note;
    } catch (error) {
      failures.push(String(error));
    }
    latencies.push(performance.now() - dueAt);
  };
  const sent: Promise<void>[] = [];
  while (sent.length < count) {
    const due = Math.min(count, Math.floor(((performance.now() - startedAt) * rate) / 1_000));
    while (sent.length < due) sent.push(send(startedAt + (sent.length * 1_000) / rate));
    await delay(2);
  }
  await Promise.all(sent);
  return { latencies, failures, last };
}

async function measureSwitch(app: App): Promise<void> {
  const pool = openPool(app.hosted?.url ?? "", platform.ca, 128);
  await loadAt(pool, rate * 3);
  const before = await loadAt(pool, requests / 2);
  const during = loadAt(pool, requests);
  const requestedAt = performance.now();
  const changed = await platform.rest.patch<App>(`/app-services/${app.id}`, { image_ref: "shop:2" });
  const { status } = await apps.ended(expectStatus(changed, 202).json);
  const deployMs = performance.now() - requestedAt;
  const through = await during;
  await pool.close();
  if (status !== "completed" || through.last !== "2") throw new Error(`the deployment is ${status}`);
  const [calm, switched] = [before, through].map(({ latencies }) => percentile(latencies, 0.99)) as [number, number];
  print(
    `requests at ${rate} a second: failed, without a deployment`,
    `${before.failures.length} of ${requests / 2}`,
    "0",
  );
  print("  failed, through a deployment", `${through.failures.length} of ${requests}`, "0");
  print("  p50, p99 without", `${ms(median(before.latencies))}, ${ms(calm)}`);
  print("  p50, p99 through", `${ms(median(through.latencies))}, ${ms(switched)}`);
  print("  p99, ratio", times(switched / calm), "<= 1.5x");
  print("  request to the end of the deployment", ms(deployMs));
  if (through.failures.length > 0) print("  first failure", through.failures[0] ?? "");
}

/** Responses of the pool in a second, by clients that each wait for their response. */
async function responsesOf(pool: Pool): Promise<number> {
  const startedAt = performance.now();
  const endsAt = startedAt + 2_000;
  let count = 0;
  const run = async () => {
    while (performance.now() < endsAt) {
      const { statusCode, body } = await pool.request({ method: "GET", path: "/" });
      await body.dump();
      if (statusCode !== 200) throw new Error(`a response is ${statusCode}`);
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, run));
  return (count * 1_000) / (performance.now() - startedAt);
}

async function measureIngress(app: App): Promise<void> {
  const { machines } = await asOperator(platform, FleetService, (fleet) => fleet.listMachines({}));
  const address = machines.find(({ ownerId }) => ownerId === app.id)?.address ?? "";
  const bare = await startBareHaproxy(node?.root ?? "", `${address}:${frontPort}`);
  const arms = {
    ingress: openPool(app.hosted?.url ?? "", platform.ca, clients),
    bare: openPool(`https://localhost:${bare.port}`, bare.ca, clients),
  };
  const [own, peer]: [number[], number[]] = [[], []];
  try {
    // The first pair is a warm-up.
    for (let pair = 0; pair <= pairs; pair += 1) {
      const order = pair % 2 === 0 ? ([arms.ingress, arms.bare] as const) : ([arms.bare, arms.ingress] as const);
      for (const arm of order) {
        const perSecond = await responsesOf(arm);
        if (pair > 0) (arm === arms.ingress ? own : peer).push(perSecond);
      }
    }
  } finally {
    for (const pool of Object.values(arms)) await pool.close();
    await bare.remove();
  }
  const ratio = ratios(own, peer);
  print(
    `${clients} clients: responses a second; bare HAProxy`,
    `${median(own).toFixed(0)}; ${median(peer).toFixed(0)}`,
  );
  print("  ratio (min - max)", `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`, ">= 0.9x");
}
