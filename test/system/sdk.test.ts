import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Client, ConnectionFailed, createClient, verifyWebhook } from "@holdfast/sdk/index.ts";
import { createNodeClient, saveProfile } from "@holdfast/sdk/node/index.ts";
import { installSdk, packSdk, sdkDirectory } from "@holdfast/testing/platform/packed-sdk.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { findRuntime } from "@holdfast/testing/platform/runtimes.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import {
  type Received,
  startWebhookReceiver,
  type WebhookReceiver,
} from "@holdfast/testing/servers/webhook-receiver.ts";

type Environment = Readonly<Record<string, string>>;

const runtimes = [
  { name: "Node 24", path: process.execPath },
  findRuntime("Node 20", "node", "v20."),
  findRuntime("Bun", "bun", "1."),
];

/** Time limit of a test that waits for a service on a busy machine. */
const timeout = 120_000;

let platform: Platform;
let receiver: WebhookReceiver;
let directory = "";
let project = "";

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-sdk-"));
  project = join(directory, "project");
  const packed = packSdk(directory).then((tarball) => installSdk(tarball, project));
  packed.catch(() => {});
  platform = await startPlatform({ environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8" } });
  receiver = await startWebhookReceiver();
  await packed;
  writeFileSync(join(project, "example.js"), exampleOf(readFileSync(join(sdkDirectory, "README.md"), "utf8")));
});
afterAll(async () => {
  await receiver?.close();
  await platform?.remove();
  rmSync(directory, { recursive: true, force: true });
});

/** Environments for each way to configure the SDK's address and credential. */
function waysIn(): [Environment, Environment, Environment] {
  const { base_url, api_key_id, api_key_secret, ca_file } = platform.admin;
  const configuration = { XDG_CONFIG_HOME: join(directory, "configuration") };
  saveProfile(configuration, "here", { base_url, ca_file, api_key_id, api_key_secret });
  return [
    { HOLDFAST_DATA: platform.directory },
    {
      HOLDFAST_BASE_URL: base_url,
      HOLDFAST_API_KEY_ID: api_key_id,
      HOLDFAST_API_KEY_SECRET: api_key_secret,
      HOLDFAST_CA_FILE: ca_file,
    },
    configuration,
  ];
}

describe("the SDK, against a platform", () => {
  test.for(runtimes.map(({ name, path }, way) => [name, path, way] as const))(
    "runs the README's example, installed from its package, under %s",
    { timeout },
    async ([name, path, way], { skip }) => {
      if (path === undefined) return skip(`there is no ${name} on PATH`);
      const environment = waysIn()[way] ?? {};
      const client = createNodeClient({ environment: waysIn()[1] });
      const since = new Date().toISOString();
      const leave = new AbortController();
      const running = client.events.follow({ type: "service.running", since }, { signal: leave.signal }).next();
      running.catch(() => {});
      const { code, output } = await run(path, [join(project, "example.js")], environment);
      expect(output).toMatch(/^connect to orders at postgres:\/\/\S+$/m);
      expect(output).toMatch(/^orders Running$/m);
      expect(output).toMatch(/^ttl_hours must be .*$/m);
      expect(output).toMatch(/^deleted$/m);
      expect({ name, code }).toEqual({ name, code: 0 });
      expect(await running).toMatchObject({ value: { data: { service_name: "orders", status: "Running" } } });
      leave.abort();
    },
  );

  test("trusts the configured authority, for one client alone", async () => {
    const { base_url: baseUrl, token } = platform.admin;
    const credentials = { kind: "bearer", token } as const;
    const trusting = createNodeClient({ environment: {}, baseUrl, credentials, caFile: platform.admin.ca_file });
    expect(await trusting.me()).toMatchObject({ kind: "token" });
    const usual = createClient({ baseUrl, credentials, retries: 0 });
    const error = await usual.me().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConnectionFailed);
    expect(String(error)).toMatch(/certificate/);
  });

  test("trusts the next authority when the file has it, without a new client", async () => {
    const { base_url: baseUrl, token } = platform.admin;
    const caFile = join(directory, "ca.pem");
    writeFileSync(caFile, (await createTestCertificate()).cert);
    const client = createNodeClient({ environment: {}, baseUrl, credentials: { kind: "bearer", token }, caFile });
    const response = client.me();
    // The first attempt is rejected by then; the next one is not, and never reads a half-written file.
    writeFileSync(`${caFile}.new`, platform.ca);
    renameSync(`${caFile}.new`, caFile);
    expect(await response).toMatchObject({ kind: "token" });
  });

  test("verifies the platform's deliveries, also during a rotation of the secret", { timeout }, async () => {
    const client = createNodeClient({ environment: waysIn()[1] });
    const { id, secret: old } = await client.webhooks.create({ url: receiver.url, events: [] });
    const first = await tested(client, id);
    expect(await verifyWebhook(first.body, first.headers, old)).toMatchObject({ event_type: "webhook.test" });

    const { secret: next } = await client.webhooks.rotateSecret(id, 1);
    const { body, headers } = await tested(client, id);
    for (const secrets of [old, next, [next, old]])
      expect(await verifyWebhook(body, headers, secrets)).toMatchObject({ data: { webhook_id: id } });
    const platformOnly = Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith("webhook-")));
    for (const secret of [old, next]) await verifyWebhook(body, platformOnly, secret);
    await expect(verifyWebhook(`${body} `, headers, [old, next])).rejects.toThrow("no signature");
    await expect(verifyWebhook(body, headers, next, { now: Date.now() + 301_000 })).rejects.toThrow(
      "too old or from the future",
    );

    const event = await verifyWebhook(body, headers, next);
    const delivery = await waitUntil("the attempt is recorded, after its response", async () =>
      (await client.webhooks.deliveries(id)).find(({ event_id }) => event_id === event.id),
    );
    await client.webhooks.redeliver(id, delivery.id);
    const copies = () => receiver.received.filter((received) => received.headers["webhook-id"] === event.id);
    await waitUntil("it is delivered again", () => copies().length > 1);
    await client.webhooks.delete(id);
  });
});

/** A test's delivery: the first one of a new event. */
async function tested(client: Client, id: string) {
  const idOf = ({ headers }: Received) => headers["webhook-id"];
  const before = new Set(receiver.received.map(idOf));
  await client.webhooks.test(id);
  return waitUntil("the test arrives", () => receiver.received.find((received) => !before.has(idOf(received))));
}

/** The first block of JavaScript. */
function exampleOf(readme: string): string {
  const [, code] = /```js\n(.*?)```/s.exec(readme) ?? [];
  if (code === undefined) throw new Error("the README has no example");
  return code;
}

function run(
  path: string,
  args: readonly string[],
  environment: Environment,
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, { env: { PATH: process.env.PATH, ...environment }, cwd: project });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text) => (output += text));
    child.stderr.setEncoding("utf8").on("data", (text) => (output += text));
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output }));
  });
}
