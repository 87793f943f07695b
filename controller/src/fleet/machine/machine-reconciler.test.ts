import { randomBytes } from "node:crypto";
import { mkdir, readFile, realpath, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { machineObject } from "@holdfast/testing/machines/machine-object.ts";
import { readyHost } from "@holdfast/testing/platform/ready-host.ts";
import { startTestMachines, type TestMachines } from "@holdfast/testing/machines/process-machines.ts";
import { testOwners } from "@holdfast/testing/machines/test-owners.ts";
import { ComputeFailure } from "@holdfast/compute/compute-failure.ts";
import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";
import { detectAbilities } from "@holdfast/compute/local/host-abilities.ts";
import { createHostsProvider } from "@holdfast/compute/router/hosts-provider.ts";
import { hostKind, type HostObject } from "../host/host.ts";
import { createMachinePlacement } from "../placement/machine-placement.ts";
import { matchesEnrollment } from "#kernel/pki/enrollment.ts";
import { createRunner, type Runner } from "#kernel/runtime/runner.ts";
import { soleOwner } from "@holdfast/testing/controller/sole-owner.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { type Collection, createCollection } from "#kernel/store/collection.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { Store } from "#kernel/store/store.ts";
import { createUnitOfWork } from "#kernel/store/unit-of-work.ts";
import { machineKind, type MachineObject, type MachineSpecObject } from "./machine.ts";
import { createMachineWork } from "./machine-reconciler.ts";

const gib = 1024 ** 3;
const signal = new AbortController().signal;
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
const { isolation, reason } = await detectAbilities();

describe.skipIf(isolation === "none")(`machines${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let etcd: TestEtcd;
  let store: Store;
  let hosts: TestMachines;
  let machines: Collection<MachineObject>;
  let objects: Collection<HostObject>;
  let runner: Runner;
  let now = 0;
  const clock = { now: () => Date.now() + now, monotonicMs: systemClock.monotonicMs };
  const begin = () => createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock, ids: uuidv7 });

  beforeAll(async () => {
    [etcd, hosts] = await Promise.all([startTestEtcd(), startTestMachines()]);
    store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
    const unit = begin();
    unit.create(hostKind, readyHost("local"));
    await unit.commit();
    watchMachines();
    await Promise.all([machines.ready, objects.ready]);
    runner.start();
  });
  afterAll(async () => {
    await runner?.stop();
    machines?.close();
    objects?.close();
    await store?.close();
    await hosts?.close();
    await etcd?.stop();
  });

  /** Kernels that machines boot from, by machine id. The test reports one for some containers, which have none. */
  const kernels = new Map<string, string>();
  /** True: the next replacement of a kernel succeeds, but its response is lost. */
  let losesAnswer = false;
  /** Machines that end within a pass, after a step of it. */
  const endsAfter = new Map<string, "growDisk" | "start">();
  async function end(id: string): Promise<void> {
    endsAfter.delete(id);
    await hosts.crash(id);
    await expect.poll(async () => (await hosts.provider.get(id, signal))?.state, { interval: 10 }).toBe("stopped");
  }
  const ofGuests = (provider: ComputeProvider): ComputeProvider => ({
    ...provider,
    async start(id, enrollment, of) {
      await provider.start(id, enrollment, of);
      if (endsAfter.get(id) === "start") await end(id);
    },
    async growDisk(id, diskBytes, of) {
      await provider.growDisk(id, diskBytes, of);
      if (endsAfter.get(id) === "growDisk") await end(id);
    },
    async get(id, of) {
      const [facts, guestKernel] = [await provider.get(id, of), kernels.get(id)];
      return facts && { ...facts, ...(guestKernel !== undefined && { guestKernel }) };
    },
    guestKernels: {
      async replace(id, kernel, of) {
        expect((await provider.get(id, of))?.state).toBe("stopped");
        kernels.set(id, kernel);
        if (losesAnswer) {
          losesAnswer = false;
          throw new ComputeFailure("The answer was lost.");
        }
      },
    },
  });

  /** Ids of machines whose agents are connected. */
  const connected = new Set<string>();

  function watchMachines(): void {
    machines = createCollection(store, machineKind);
    objects = createCollection(store, hostKind);
    const provider = createHostsProvider({
      hosts: () => new Map([["local", ofGuests(hosts.provider)]]),
      hostOf: (id) => machines.get(id)?.object.spec.hostId,
    });
    const work = createMachineWork({
      provider,
      hosts: objects,
      placement: createMachinePlacement({
        hosts: objects,
        machines,
        provider,
        begin,
        clock,
        storeMayBeBehind: () => false,
      }),
      machines,
      owners: testOwners,
      begin,
      sealer,
      clock,
      log: silentLog,
      installationId: "i",
      caFingerprint: () => "ff",
      controllers: () => ["127.0.0.1:7001"],
      session: (id) => (connected.has(id) ? { connectedAt: Date.now() } : undefined),
      onSession: () => ({ close() {} }),
    });
    runner = createRunner({ loops: [work], ownership: soleOwner, clock, log: silentLog, random: Math.random });
  }

  async function newMachine(spec: Partial<MachineSpecObject> = {}): Promise<string> {
    const machine = machineObject({
      owner: { kind: "managed-service", id: "s" },
      hostId: "local",
      rootBytes: gib,
      ...spec,
    });
    const { id } = machine.metadata;
    const unit = begin();
    unit.create(machineKind, machine);
    await unit.commit();
    return id;
  }

  async function change(id: string, edit: (machine: MachineObject) => MachineObject): Promise<void> {
    await retryConflict(signal, async () => {
      const before = await machines.getCurrent(id);
      if (before === undefined) throw new Error("it is there");
      const unit = begin();
      unit.update(machineKind, before, edit(before.object));
      // Tests wait for states after this change, so the cache must have it.
      await machines.untilRevision(await unit.commit(), 60_000);
    });
  }

  const power = (id: string, to: "on" | "off") => change(id, (m) => ({ ...m, spec: { ...m.spec, power: to } }));
  const status = (id: string) => machines.get(id)?.object.status;
  const becomes = (id: string, state: string | undefined) =>
    expect.poll(() => status(id)?.state, { interval: 10 }).toBe(state);

  /** Records the states of a machine, each when it changes. */
  function watchStates(id: string): { readonly states: readonly unknown[]; close(): void } {
    const states: unknown[] = [];
    const watch = machines.subscribe((changed) => {
      if (changed === id && states.at(-1) !== status(id)?.state) states.push(status(id)?.state);
    });
    return { states, close: () => watch.close() };
  }

  it("runs a machine, with an enrollment that only its object and its file have", async () => {
    const id = await newMachine();
    await becomes(id, "running");
    const path = join(hosts.layout.machine(id).state, "enrollment.json");
    const file = JSON.parse(await readFile(path, "utf8")) as { token: string };
    expect(file).toMatchObject({
      installation_id: "i",
      machine_id: id,
      controllers: ["127.0.0.1:7001"],
      ca_fingerprint: "ff",
    });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(matchesEnrollment(status(id)?.enrollment ?? null, file.token, sealer, clock)).toBe(true);
    expect(JSON.stringify(machines.get(id)?.object)).not.toContain(file.token);
    const facts = await hosts.provider.get(id, signal);
    expect(facts).toMatchObject({ state: "running", starts: 1, address: status(id)?.address });
  });

  it("stops, restarts with the same address and another enrollment, and deletes it", async () => {
    const id = await newMachine();
    await becomes(id, "running");
    const first = status(id);
    await power(id, "off");
    await becomes(id, "stopped");
    expect(status(id)?.enrollment).toBeNull();
    await power(id, "on");
    await becomes(id, "running");
    expect(status(id)?.address).toBe(first?.address);
    expect(status(id)?.enrollment?.tokenHash).not.toBe(first?.enrollment?.tokenHash);
    await change(id, (m) => ({ ...m, metadata: { ...m.metadata, deletionRequestedAt: 1 } }));
    await becomes(id, undefined);
    expect(await hosts.provider.get(id, signal)).toBeUndefined();
    expect((await store.list(`/holdfast/v1/machine/${id}`, { limit: 1 })).values).toEqual([]);
  });

  it("restarts a machine that crashed", async () => {
    const id = await newMachine();
    await becomes(id, "running");
    await hosts.crash(id);
    await expect.poll(async () => (await hosts.provider.get(id, signal))?.starts).toBe(2);
    await becomes(id, "running");
  });

  it("restarts a machine that crashed twice, also after the clock was set back by an hour", async () => {
    const id = await newMachine();
    const starts = async () => (await hosts.provider.get(id, signal))?.starts;
    await becomes(id, "running");
    await hosts.crash(id);
    await expect.poll(starts).toBe(2);
    await becomes(id, "running");
    await hosts.crash(id);
    // The crash was detected; the machine may run again between two polls.
    await expect.poll(async () => status(id)?.state === "starting" || (await starts()) === 3).toBe(true);
    now = -3_600_000;
    await expect.poll(starts).toBe(3);
    now = 0;
  });

  it("counts a crash in the middle of a pass", async () => {
    const id = await newMachine();
    const { states, close } = watchStates(id);
    await becomes(id, "running");
    endsAfter.set(id, "growDisk");
    await change(id, (m) => ({ ...m, spec: { ...m.spec, diskBytes: 2 * gib } }));
    await expect.poll(async () => (await hosts.provider.get(id, signal))?.starts).toBe(2);
    await becomes(id, "running");
    close();
    // A state of stopped would hide the crash from the pass that counts it.
    expect(states.slice(-3)).toEqual(["running", "starting", "running"]);
  });

  it("counts a crash within the pass that started the machine", async () => {
    const starting = machineObject({
      owner: { kind: "managed-service", id: "s" },
      hostId: "local",
      rootBytes: gib,
    });
    const { id } = starting.metadata;
    endsAfter.set(id, "start");
    const { states, close } = watchStates(id);
    const unit = begin();
    unit.create(machineKind, starting);
    await unit.commit();
    await becomes(id, "running");
    expect((await hosts.provider.get(id, signal))?.starts).toBe(2);
    close();
    expect(states).toContain("starting");
    expect(states).not.toContain("stopped");
  });

  it("has failed after five crashes, runs once its agent is connected, and counts from zero after a stop", async () => {
    const id = await newMachine();
    await becomes(id, "running");
    for (let ends = 1; ends <= 5; ends += 1) {
      // Only a running machine can crash; the back-off before the fifth restart is 4 s.
      await expect.poll(() => status(id)?.state, { interval: 10, timeout: 30_000 }).toBe("running");
      await hosts.crash(id);
      // The machine may run again between two polls.
      const isDetected = async () =>
        status(id)?.state !== "running" || (await hosts.provider.get(id, signal))?.starts === ends + 1;
      await expect.poll(isDetected, { interval: 10 }).toBe(true);
    }
    await expect.poll(() => status(id)?.state, { interval: 10, timeout: 30_000 }).toBe("failed");
    expect(status(id)?.reason).toMatch(/ended 5 times within ten minutes/);
    expect(status(id)?.crashedAt).toBeGreaterThan(0);
    const touch = () =>
      change(id, (m) => ({ ...m, metadata: { ...m.metadata, generation: m.metadata.generation + 1 } }));
    await expect.poll(async () => (await hosts.provider.get(id, signal))?.state, { timeout: 30_000 }).toBe("running");
    connected.add(id);
    await touch();
    await becomes(id, "running");
    expect(status(id)).not.toHaveProperty("crashedAt");
    connected.delete(id);
    await power(id, "off");
    await becomes(id, "stopped");
    await power(id, "on");
    await becomes(id, "running");
  }, 120_000);

  it("reports why a machine cannot be created, and creates it once it can", async () => {
    const id = await newMachine({ software: { name: "postgresql", version: "9" } });
    await becomes(id, "failed");
    expect(status(id)?.reason).toMatch(/postgresql 9/);
    await change(id, (m) => ({ ...m, spec: { ...m.spec, software: { ...m.spec.software, version: "17" } } }));
    await becomes(id, "running");
    expect(status(id)?.reason).toBe("");
    const large = await newMachine({ diskBytes: 1e6 * gib });
    await becomes(large, "failed");
    expect(status(large)?.reason).toMatch(/1000000.0 GiB are requested/);
  });

  it("grows the disk of a running machine without a restart", async () => {
    const id = await newMachine();
    await becomes(id, "running");
    await change(id, (m) => ({ ...m, spec: { ...m.spec, diskBytes: 2 * gib } }));
    await expect.poll(async () => (await hosts.provider.get(id, signal))?.diskBytes).toBe(2 * gib);
    expect((await hosts.provider.get(id, signal))?.starts).toBe(1);
  });

  it("records a guest's kernel, and replaces it once it is off, though that response is lost", async () => {
    const id = await newMachine();
    await becomes(id, "running");
    kernels.set(id, "guest-1");
    const pinned = () => machines.get(id)?.object.spec.guestKernel;
    const touch = () =>
      change(id, (m) => ({ ...m, metadata: { ...m.metadata, generation: m.metadata.generation + 1 } }));
    await touch();
    await expect.poll(pinned).toBe("guest-1");
    await change(id, (m) => ({ ...m, spec: { ...m.spec, guestKernel: "guest-2", power: "off" } }));
    await becomes(id, "stopped");
    expect(kernels.get(id)).toBe("guest-1");
    losesAnswer = true;
    await power(id, "on");
    await becomes(id, "running");
    expect([losesAnswer, kernels.get(id), pinned()]).toEqual([false, "guest-2", "guest-2"]);
    expect((await hosts.provider.get(id, signal))?.starts).toBe(2);
  });

  it("runs with a snapshot whose removal fails, retries, and deletes the record afterwards", async () => {
    const id = await newMachine();
    await becomes(id, "running");
    // A directory instead of a file makes the removal fail.
    const snapshot = `${await realpath(hosts.layout.machine(id).diskFile)}.snapshot-op-1`;
    await mkdir(snapshot);
    await power(id, "off");
    await power(id, "on");
    const left = () => status(id)?.staleSnapshots;
    await expect.poll(left).toMatchObject([{ name: "op-1", tries: 1, reason: "The host could not remove it." }]);
    await becomes(id, "running");
    await rm(snapshot, { recursive: true });
    now += 15_000;
    await change(id, (m) => ({ ...m, metadata: { ...m.metadata, generation: m.metadata.generation + 1 } }));
    await expect.poll(left).toEqual([]);
    now = 0;
  });

  it("adopts running machines after the store was rebuilt", async () => {
    const id = await newMachine();
    await becomes(id, "running");
    await change(id, (m) => ({
      ...m,
      status: { state: "pending", reason: "", address: "", publicAddress: "", enrollment: null, certificate: null },
    }));
    await becomes(id, "running");
    const facts = await hosts.provider.get(id, signal);
    expect(status(id)?.address).toBe(facts?.address);
    expect(facts?.starts).toBe(1);
  });
});
