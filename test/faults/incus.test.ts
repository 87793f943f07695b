import { ComputeFailure } from "@holdfast/compute/compute-failure.ts";
import type { MachineSpec } from "@holdfast/compute/compute-provider.ts";
import { untilServing } from "@holdfast/compute/incus/incus-resources.ts";
import { instanceName } from "@holdfast/compute/incus/instance-config.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import { daemonOf, incusMissing, startTestIncus, type TestIncus } from "@holdfast/testing/machines/incus-machines.ts";
import { isAlive } from "@holdfast/testing/platform/platform-processes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { setFrozen } from "./fault-fixture.ts";

const missing = await incusMissing();
const why = missing === undefined ? "" : ` (skipped: ${missing})`;
const signal = new AbortController().signal;
const gib = 1024 ** 3;
const enrollment = { installationId: "test", controllers: ["127.0.0.1:1"], caFingerprint: "00", token: "first" };

describe.skipIf(missing !== undefined)(`the provider of Incus${why}`, () => {
  let machines: TestIncus;
  let created = 0;

  beforeAll(async () => {
    machines = await startTestIncus({ command: ["/usr/bin/perl", "-e", "$SIG{TERM}=sub{exit};sleep(1)while(1);"] });
    await machines.provider.prepare(signal);
  });
  afterAll(() => machines?.close());

  const spec = () => testMachineSpec({ id: `fault-${created++}`, plan: { vcpu: 1, memoryBytes: gib } });
  /** Runs `work`, and kills the daemon once it has begun an operation. Resolves with all results. */
  async function killedAtWork<T>(work: () => readonly Promise<T>[]): Promise<T[]> {
    const { events } = machines.incus;
    await events.ready(signal);
    const started = Promise.withResolvers<void>();
    const listening = events.subscribe({
      event: ({ type }) => type === "operation" && started.resolve(),
      opened: () => undefined,
    });
    const ends = work();
    await started.promise;
    listening.close();
    await machines.killDaemon();
    return Promise.all(ends);
  }
  const instances = async () =>
    (await machines.incus.call<string[]>("GET", "/1.0/instances", signal)).map((path) => path.split(/[/?]/)[3]);

  it("creates one machine when its daemon is killed during the creation, and leaves no other", async () => {
    const specs = [spec(), spec(), spec()];
    const ends = await killedAtWork(() =>
      specs.map((each) => machines.provider.create(each, AbortSignal.timeout(60_000)).catch((error: unknown) => error)),
    );
    for (const end of ends) expect(end).not.toBeInstanceOf(ComputeFailure);
    for (const each of specs) {
      expect(await machines.provider.create(each, signal)).toMatchObject({ state: "stopped" });
      // The machine exists completely, not only its name.
      await machines.provider.start(each.id, enrollment, signal);
    }
    expect((await instances()).sort()).toEqual(specs.map(({ id }) => instanceName(id)).sort());
    for (const { id } of specs) await machines.provider.destroy(id, signal);
    expect(await instances()).toEqual([]);
  });

  it("removes a machine completely when its daemon is killed during the removal", async () => {
    const specs = [spec(), spec(), spec()];
    for (const each of specs) {
      await machines.provider.create(each, signal);
      await machines.provider.start(each.id, enrollment, signal);
    }
    await killedAtWork(() =>
      specs.map(({ id }) => machines.provider.destroy(id, AbortSignal.timeout(60_000)).catch(() => undefined)),
    );
    for (const { id } of specs) await machines.provider.destroy(id, signal);
    expect(await instances()).toEqual([]);
    expect(await machines.provider.list(signal)).toEqual([]);
  });

  it("reports no failed start when its daemon is killed during the start", async () => {
    const specs = [spec(), spec(), spec()];
    for (const each of specs) await machines.provider.create(each, signal);
    const start = ({ id }: MachineSpec) => machines.provider.start(id, enrollment, signal);
    const ends = await killedAtWork(() => specs.map((each) => start(each).catch((error: unknown) => error)));
    for (const end of ends) expect(end).not.toBeInstanceOf(ComputeFailure);
    for (const each of specs) {
      await start(each);
      expect(await machines.provider.get(each.id, signal)).toMatchObject({ state: "running" });
      await machines.provider.destroy(each.id, signal);
    }
  });

  it("creates no second machine after an abandoned creation", async () => {
    const machine = spec();
    const shortTimeouts = new AbortController();
    await machines.incus.events.ready(signal);
    const events = machines.incus.events.subscribe({
      event: ({ type }) => type === "operation" && shortTimeouts.abort(new Error("enough")),
      opened: () => undefined,
    });
    await expect(machines.provider.create(machine, shortTimeouts.signal)).rejects.toThrow("enough");
    events.close();
    const facts = await machines.another().create(machine, signal);
    expect(facts).toMatchObject({ id: machine.id, state: "stopped" });
    expect(await instances()).toEqual([instanceName(machine.id)]);
    await machines.provider.start(machine.id, enrollment, signal);
    expect(await machines.provider.get(machine.id, signal)).toMatchObject({ state: "running", starts: 1 });
    await machines.provider.destroy(machine.id, signal);
  });

  it("fences a paused machine, and reports it as running until then", async () => {
    const { id } = await machines.provider.create(spec(), signal);
    await machines.provider.start(id, enrollment, signal);
    await setFrozen(machines.incus, id, true);
    expect(await machines.provider.get(id, signal)).toMatchObject({ state: "running" });
    await machines.provider.fence(id, signal);
    expect(await machines.provider.get(id, signal)).toMatchObject({ state: "stopped" });
    await machines.provider.destroy(id, signal);
  });

  it("imports a missing image again, and recreates a missing container around its data", async () => {
    const machine = spec();
    await machines.provider.create(machine, signal);
    await machines.provider.start(machine.id, enrollment, signal);
    await machines.provider.fence(machine.id, signal);
    await machines.incus.run("DELETE", `/1.0/instances/${instanceName(machine.id)}`, signal);
    for (const path of await machines.incus.call<string[]>("GET", "/1.0/images", signal))
      await machines.incus.run("DELETE", path.split("?")[0] ?? "", signal);
    expect(await machines.provider.get(machine.id, signal)).toMatchObject({ address: "", hasData: true });
    expect(await machines.provider.create(machine, signal)).toMatchObject({ hasData: true, starts: 1 });
    await machines.provider.start(machine.id, enrollment, signal);
    expect(await machines.provider.get(machine.id, signal)).toMatchObject({ state: "running", starts: 2 });
    await machines.provider.destroy(machine.id, signal);
  });

  it.skipIf(process.env["HOLDFAST_TEST_PAUSE_S"] === undefined)(
    "kills a hanging daemon, and uses the next one",
    async () => {
      const { id } = await machines.provider.create(spec(), signal);
      await machines.provider.start(id, enrollment, signal);
      const hung = await daemonOf(machines.incus);
      process.kill(hung, "SIGSTOP");
      await waitUntil("the hanging daemon has ended", () => !isAlive(hung), { withinMs: 90_000 });
      await untilServing(machines.incus, AbortSignal.timeout(60_000));
      expect(await machines.provider.get(id, signal)).toMatchObject({ state: "running", starts: 1 });
      await machines.provider.destroy(id, signal);
    },
  );
});
