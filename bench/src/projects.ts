import { parseArgs } from "node:util";
import type { Deployment, Project } from "@holdfast/sdk/index.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { cpuMsOf, printHost } from "./support/host.ts";
import { median, ms, percentile, print, ratios, times } from "./support/figures.ts";

// Databases as one project against the same ones POSTed concurrently; a chain of three against sequential ones; and a
// deployment of a hundred resources without changes.
const { values } = parseArgs({
  options: {
    pairs: { type: "string", default: "3" },
    databases: { type: "string", default: "10" },
    resources: { type: "string", default: "100" },
    deploys: { type: "string", default: "40" },
    engine: { type: "string", default: "valkey" },
  },
});
const { engine } = values;
const [pairs, databases, resources, deploys] = [
  Number(values.pairs),
  Number(values.databases),
  Number(values.resources),
  Number(values.deploys),
];
const spec = { plan: "tier-1", storage_gb: 1 };

printHost();
const platform: Platform = await startPlatform();
const services = createServices(platform);
try {
  await measureProject();
  await chain();
  await nothing();
} finally {
  await platform.remove();
}

function descriptorOf(name: string, count: number, isChain = false) {
  const names = Array.from({ length: count }, (_, index) => `m${index}`);
  const dependencies = Object.fromEntries(names.slice(1).map((each, index) => [each, [names[index]]]));
  return {
    name,
    resources: names.map((each) => ({ logical_name: each, kind: engine, spec })),
    ...(isChain && { dependencies }),
  };
}

async function deploy(descriptor: { readonly name: string }): Promise<string> {
  const answer = await platform.rest.post<{ deployment_id: string }>("/projects/deploy", { descriptor });
  return expectStatus(answer, 202).json.deployment_id;
}

/** Resolves when it is Completed; throws for any other end. */
async function completed(name: string, id: string): Promise<void> {
  const path = `/projects/${name}/deployments/${id}`;
  const record = await waitUntil(
    `${name} is deployed`,
    async () => {
      const { json } = await platform.rest.get<Deployment>(path);
      return json.finished_at === null ? undefined : json;
    },
    { withinMs: 900_000, everyMs: 50 },
  );
  if (record.status !== "Completed") throw new Error(`${name} is ${record.status}: ${record.error}`);
}

async function removed(name: string): Promise<void> {
  expectStatus(await platform.rest.delete(`/projects/${name}`), 202);
  const isDeleted = async () => (await platform.rest.get<Project>(`/projects/${name}`)).json.status === "Deleted";
  await waitUntil(`${name} is deleted`, isDeleted, { withinMs: 600_000, everyMs: 200 });
}

/** POSTs all concurrently, and waits for all. */
async function posted(prefix: string, count: number): Promise<number> {
  const startedAt = performance.now();
  const made = await Promise.all(
    Array.from({ length: count }, (_, index) => services.create(`${prefix}-${index}`, { database_type: engine })),
  );
  await Promise.all(
    made.map(({ id }) =>
      waitUntil(`${id} runs`, async () => (await services.get(id)).status === "Running", {
        withinMs: 900_000,
        everyMs: 50,
      }),
    ),
  );
  const wallMs = performance.now() - startedAt;
  await Promise.all(made.map(({ id }) => services.delete(id)));
  await Promise.all(made.map(({ id }) => services.deleted(id, 600_000)));
  return wallMs;
}

async function deployed(descriptor: { readonly name: string }): Promise<number> {
  const startedAt = performance.now();
  await completed(descriptor.name, await deploy(descriptor));
  const wallMs = performance.now() - startedAt;
  await removed(descriptor.name);
  return wallMs;
}

async function measureProject(): Promise<void> {
  const projectMs: number[] = [];
  const singles: number[] = [];
  // The first of each warms caches.
  for (let pair = 0; pair <= pairs; pair += 1) {
    const isFirst = pair % 2 === 0;
    const deployProject = () => deployed(descriptorOf(`project-${pair}`, databases));
    const createSingles = () => posted(`single-${pair}`, databases);
    const [a, b] = isFirst
      ? [await deployProject(), await createSingles()]
      : [await createSingles(), await deployProject()];
    if (pair === 0) continue;
    projectMs.push(isFirst ? a : b);
    singles.push(isFirst ? b : a);
  }
  const each = ratios(projectMs, singles);
  print(`${databases} databases as a project, p50`, ms(median(projectMs)));
  print(`${databases} databases POSTed concurrently, p50`, ms(median(singles)));
  print(
    "as a project to concurrently: median (min - max)",
    `${times(each.median)} (${times(each.min)} - ${times(each.max)})`,
    "<= 1.1x",
  );
}

async function chain(): Promise<void> {
  const overheads: number[] = [];
  for (let pair = 0; pair < pairs; pair += 1) {
    let singleMs = 0;
    for (let level = 0; level < 3; level += 1) singleMs += await posted(`link-${pair}-${level}`, 1);
    const chainMs = await deployed(descriptorOf(`chain-${pair}`, 3, true));
    overheads.push((chainMs - singleMs) / 3);
  }
  print("a chain of 3, beyond the single ones, a level, p50", ms(median(overheads)), "<= 200 ms");
}

/** Deploys a project of many resources once, then again and again without changes. */
async function nothing(): Promise<void> {
  const descriptor = descriptorOf("many", resources);
  await completed("many", await deploy(descriptor));
  const [controller = 0] = platform.processes().controllers;
  const [planning, deploying]: [number[], number[]] = [[], []];
  let cpuMs = 0;
  for (let round = 0; round < deploys + 5; round += 1) {
    const startedAt = performance.now();
    const plan = await platform.rest.post<{ plan: { action: string }[] }>("/projects/plan", { descriptor });
    const planned = performance.now();
    const before = cpuMsOf(controller);
    const response = await platform.rest.post<{ deployment_id: string; status: string; plan: { action: string }[] }>(
      "/projects/deploy",
      { descriptor },
    );
    const done = performance.now();
    const { status, plan: actions } = expectStatus(response, 202).json;
    const isNothing = [...plan.json.plan, ...actions].every(({ action }) => action === "noop");
    if (!isNothing || status !== "Running") throw new Error(`something was to be done: ${response.text.slice(0, 500)}`);
    if (round < 5) continue;
    planning.push(planned - startedAt);
    deploying.push(done - planned);
    cpuMs += cpuMsOf(controller) - before;
  }
  print(
    `plan of ${resources} unchanged resources, p50 / p95`,
    `${ms(median(planning))} / ${ms(percentile(planning, 0.95))}`,
  );
  const figures = `${ms(median(deploying))} / ${ms(percentile(deploying, 0.95))}`;
  print(`deploy of ${resources} unchanged resources, p50 / p95`, figures, "<= 50 ms p95");
  print("CPU of the controller for each", ms(cpuMs / deploys));
}
