import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type InferenceCallers, createInferenceCallers } from "@holdfast/testing/platform/inference-callers.ts";
import { type InferenceProcess, startInferenceProcess } from "@holdfast/testing/platform/inference-process.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { createOrganizations, type Organizations } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { argumentsAndEnvironment, programOf } from "@holdfast/testing/platform/platform-processes.ts";
import { type SecondController, startSecondController } from "@holdfast/testing/platform/second-controller.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

/**
 * Listeners that no setting names: of a second controller with its DNS server, and of a second issuer, store and proxy.
 */
let platform: Platform;
let organizations: Organizations;
let fixture: InferenceCallers;
let second: SecondController;
let proxy: InferenceProcess;
const children: ChildProcess[] = [];
/** Another address of this host. */
const otherAddress = "127.0.0.9";

beforeAll(async () => {
  platform = await startPlatform({ environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" } });
  organizations = createOrganizations(platform);
  fixture = createInferenceCallers(platform, await organizations.first());
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await proxy?.remove();
  await second?.stop();
  await fixture?.close();
  organizations?.close();
  await platform?.remove();
});

function settingsOf(pid: number | undefined): Record<string, string> {
  const { environ } = argumentsAndEnvironment(pid ?? 0);
  return Object.fromEntries(environ.split("\0").map((entry) => entry.split(/=(.*)/s, 2) as [string, string]));
}

/** Starts a second process of a data plane with the same identity; resolves when it has written the line. */
async function startSecond(
  plane: "issuer" | "store",
  settings: Readonly<Record<string, string>>,
  line: string,
): Promise<void> {
  const child = spawn(process.execPath, [programOf(platform.processes()[plane] ?? 0)], {
    env: { ...settingsOf(platform.processes()[plane]), ...settings },
    stdio: ["ignore", "ignore", "pipe"],
  });
  children.push(child);
  let output = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  await waitUntil(`the second ${plane} runs`, () => output.includes(line), { describe: () => output });
}

async function startSecondIssuer(port: number, metricsPort: number): Promise<void> {
  const directory = join(platform.directory, "second-issuer");
  mkdirSync(directory, { mode: 0o700 });
  const settings = {
    HOLDFAST_ISSUER_LISTEN: `${otherAddress}:${port}`,
    HOLDFAST_ISSUER_DIR: directory,
    HOLDFAST_ISSUER_METRICS: `${otherAddress}:${metricsPort}`,
  };
  await startSecond("issuer", settings, "following controller");
}

const provide = async (port: number) => {
  const body = { provider: "provider_c", api_key: "k", base_url: `https://${otherAddress}:${port}/v1` };
  const { status, json } = await fixture.put("providers", body);
  return [status, json["code"]];
};

it("listeners that processes open later are no targets for any of them", { timeout: 240_000 }, async () => {
  const [issuerPort = 0, metricsPort = 0, storePort = 0] = await freePorts(3);
  const { secret } = await fixture.newKey();
  await fixture.put("settings", { eu_only: false, monthly_cost_limit_cents: 5_000 });
  // The installation has not recorded its listeners yet.
  expect((await provide(issuerPort))[1]).toBeUndefined();
  const sayOfCall = () => fixture.chat(secret, "plain").then(String, (error: Error) => error.message);
  await waitUntil("the proxy serves that", async () => /ECONNREFUSED|could not be called/.test(await sayOfCall()));
  expect(await sayOfCall()).not.toContain("not allowed");
  second = await startSecondController(platform);
  proxy = await startInferenceProcess(platform);
  await startSecondIssuer(issuerPort, metricsPort);
  await startSecond("store", { HOLDFAST_STORE_LISTEN: `${otherAddress}:${storePort}` }, "store ready");
  const controllerSettings = settingsOf(second.pid);
  const portOf = (text = "") => Number(text.slice(text.lastIndexOf(":") + 1));
  const ports = {
    "API of the second controller": portOf(controllerSettings["HOLDFAST_API_LISTEN"]),
    "agents of the second controller": portOf(controllerSettings["HOLDFAST_AGENT_LISTEN"]),
    "DNS server of the second controller": portOf(controllerSettings["HOLDFAST_DNS_SERVERS"]),
    "second proxy": portOf(new URL(proxy.url).host),
    "second issuer": issuerPort,
    "metrics of the second issuer": metricsPort,
    "second store": storePort,
  };
  for (const [name, port] of Object.entries(ports))
    await waitUntil(`${name} is refused by the first controller`, async () => (await provide(port))[0] === 422);
  // The proxy has run since before, and its configuration still has that target.
  await waitUntil("the first proxy refuses the second issuer", async () => (await sayOfCall()).includes("not allowed"));
});
