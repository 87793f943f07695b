import { setTimeout as sleep } from "node:timers/promises";
import type { MachineSpec } from "@holdfast/controller/compute/compute-provider.ts";
import type { IncusClient } from "@holdfast/controller/compute/incus/incus-client.ts";
import { instanceName } from "@holdfast/controller/compute/incus/instance-config.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queryOnce } from "../support/clients.ts";
import {
  daemonOf,
  firstProcessOf,
  incusMissing,
  openIncusOf,
  startTestIncus,
  type TestIncus,
} from "../support/incus-machines.ts";
import { type Platform, startPlatform } from "../support/platform.ts";
import { isAlive } from "../support/platform-processes.ts";
import { createServices, type RunningService, type Services } from "../support/services.ts";
import { waitUntil } from "../support/wait-until.ts";

const missing = await incusMissing();
const why = missing === undefined ? "" : ` (skipped: ${missing})`;
const signal = new AbortController().signal;
const gib = 1024 ** 3;
const enrollment = { installationId: "test", controllers: ["127.0.0.1:1"], caFingerprint: "00", token: "first" };

describe.skipIf(missing !== undefined)(`the provider of Incus${why}`, () => {
  let machines: TestIncus;
  let made = 0;

  beforeAll(async () => {
    machines = await startTestIncus({ command: ["/usr/bin/perl", "-e", "$SIG{TERM}=sub{exit};sleep(1)while(1);"] });
    await machines.provider.prepare(signal);
  });
  afterAll(() => machines?.close());

  const spec = (): MachineSpec => ({
    id: `fault-${made++}`,
    installationId: "test",
    plan: { vcpu: 1, memoryBytes: gib },
    diskBytes: gib,
    zone: "local",
    storageTier: "maxiops",
    engine: "postgresql",
    version: "17",
  });
  const instances = async () =>
    (await machines.incus.call<string[]>("GET", "/1.0/instances", signal)).map((path) => path.split(/[/?]/)[3]);

  it("makes one machine when its daemon is killed while it is made, and leaves no stray", async () => {
    const asked = [spec(), spec(), spec()];
    const first = asked.map((each) =>
      machines.provider.create(each, AbortSignal.timeout(60_000)).catch(() => undefined),
    );
    await sleep(100);
    await machines.killDaemon();
    await Promise.all(first);
    for (const each of asked) expect(await machines.provider.create(each, signal)).toMatchObject({ state: "stopped" });
    expect((await instances()).sort()).toEqual(asked.map(({ id }) => instanceName(id)).sort());
    for (const { id } of asked) await machines.provider.destroy(id, signal);
    expect(await instances()).toEqual([]);
  });

  it("makes no twin of a machine whose creation nobody waited for", async () => {
    const asked = spec();
    const impatient = new AbortController();
    const events = machines.incus.events.subscribe({
      event: ({ type }) => type === "operation" && impatient.abort(new Error("enough")),
      opened: () => undefined,
    });
    await expect(machines.provider.create(asked, impatient.signal)).rejects.toThrow("enough");
    events.close();
    const facts = await machines.another().create(asked, signal);
    expect(facts).toMatchObject({ id: asked.id, state: "stopped" });
    expect(await instances()).toEqual([instanceName(asked.id)]);
    await machines.provider.start(asked.id, enrollment, signal);
    expect(await machines.provider.get(asked.id, signal)).toMatchObject({ state: "running", starts: 1 });
    await machines.provider.destroy(asked.id, signal);
  });

  it("fences a machine that is paused, and takes it for running until then", async () => {
    const { id } = await machines.provider.create(spec(), signal);
    await machines.provider.start(id, enrollment, signal);
    await setState(machines.incus, id, "freeze");
    expect(await machines.provider.get(id, signal)).toMatchObject({ state: "running" });
    await machines.provider.fence(id, signal);
    expect(await machines.provider.get(id, signal)).toMatchObject({ state: "stopped" });
    await machines.provider.destroy(id, signal);
  });

  it("imports an image that is missing again, and makes a container that is missing again around its data", async () => {
    const asked = spec();
    await machines.provider.create(asked, signal);
    await machines.provider.start(asked.id, enrollment, signal);
    await machines.provider.fence(asked.id, signal);
    await machines.incus.run("DELETE", `/1.0/instances/${instanceName(asked.id)}`, signal);
    for (const path of await machines.incus.call<string[]>("GET", "/1.0/images", signal))
      await machines.incus.run("DELETE", path.split("?")[0] ?? "", signal);
    expect(await machines.provider.get(asked.id, signal)).toMatchObject({ address: "", hasData: true });
    expect(await machines.provider.create(asked, signal)).toMatchObject({ hasData: true, starts: 1 });
    await machines.provider.start(asked.id, enrollment, signal);
    expect(await machines.provider.get(asked.id, signal)).toMatchObject({ state: "running", starts: 2 });
    await machines.provider.destroy(asked.id, signal);
  });
});

describe.skipIf(missing !== undefined)(`a service on a machine of Incus${why}`, () => {
  let platform: Platform;
  let services: Services;
  let incus: IncusClient;
  let main: RunningService;
  const access = () => ({ password: main.password });
  const machine = () => main.service.nodes[0]?.id ?? "";

  beforeAll(async () => {
    platform = await startPlatform({ flags: ["--provider", "incus"] });
    services = createServices(platform);
    const { id } = await services.create("main");
    await services.settled(id, "Running", 150_000);
    main = await services.open(id);
    incus = openIncusOf(platform);
    await queryOnce(platform, main.connection, access(), "CREATE TABLE kept AS SELECT 42 AS value");
  });
  afterAll(async () => {
    await incus?.close();
    await platform?.remove();
  });

  async function serves(): Promise<void> {
    await waitUntil(
      "the service answers with its data",
      async () => {
        const rows = await queryOnce(platform, main.connection, access(), "SELECT value FROM kept");
        return JSON.stringify(rows) === JSON.stringify([{ value: 42 }]);
      },
      { withinMs: 120_000, describe: () => services.describe(main.service.id) },
    );
  }

  it("comes back by itself with its data when the machine is killed", async () => {
    process.kill(await firstProcessOf(incus, machine()), "SIGKILL");
    await serves();
    await services.settled(main.service.id, "Running", 120_000);
  });

  it("says so while the machine is paused, and goes on without a restart", async () => {
    const keeper = await firstProcessOf(incus, machine());
    await setState(incus, machine(), "freeze");
    try {
      await waitUntil(
        "health says that the service is not well",
        async () => (await services.get(main.service.id)).health.status !== "healthy",
        { describe: () => services.describe(main.service.id) },
      );
    } finally {
      await setState(incus, machine(), "unfreeze");
    }
    await serves();
    await waitUntil(
      "health says that it is well again",
      async () => (await services.get(main.service.id)).health.status === "healthy",
      { describe: () => services.describe(main.service.id) },
    );
    expect(await firstProcessOf(incus, machine())).toBe(keeper);
  });

  it("goes on while the daemon of Incus is killed, and so does the making of another", async () => {
    const keeper = await firstProcessOf(incus, machine());
    const daemon = await daemonOf(incus);
    process.kill(daemon, "SIGKILL");
    await waitUntil("the daemon is gone", () => !isAlive(daemon));
    await serves();
    const other = await services.create("other");
    await services.settled(other.id, "Running", 150_000);
    expect(await firstProcessOf(incus, machine())).toBe(keeper);
    await services.delete(other.id);
  });
});

async function setState(incus: IncusClient, machineId: string, action: "freeze" | "unfreeze"): Promise<void> {
  await incus.run("PUT", `/1.0/instances/${instanceName(machineId)}/state`, AbortSignal.timeout(60_000), { action });
}
