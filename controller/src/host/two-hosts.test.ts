import { randomBytes, randomUUID } from "node:crypto";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestEtcd, type TestEtcd } from "../../../test/support/etcd.ts";
import { startTestMachines, type TestMachines } from "../../../test/support/process-machines.ts";
import { readyHost, testHostFacts } from "../../../test/support/ready-host.ts";
import { HostUnreachable } from "../compute/compute-failure.ts";
import type { ComputeProvider } from "../compute/compute-provider.ts";
import { detectAbilities } from "../compute/host/host-abilities.ts";
import { createHostsProvider, type HostsProvider } from "../compute/hosts/hosts-provider.ts";
import type { SessionFacts } from "../fleet/session/session-facts.ts";
import type { MachineObject, MachineSpecObject } from "../machine/machine.ts";
import { createMachineWork } from "../machine/machine-reconciler.ts";
import { createOrphanSweep } from "../machine/orphan-sweep.ts";
import { claimedMachine, createWaitingMachines, type WaitingMachines } from "../machine/waiting-machines.ts";
import { createRunner, type Runner } from "../runtime/runner.ts";
import { soleOwner } from "../runtime/sole-owner.ts";
import { createSealer } from "../secrets/sealer.ts";
import { type Collection, createCollection } from "../store/collection.ts";
import { createEtcdStore } from "../store/etcd-store.ts";
import { retryConflict } from "../store/retry-conflict.ts";
import type { Store } from "../store/store.ts";
import { createUnitOfWork } from "../store/unit-of-work.ts";
import { type HostObject, withHostSpec } from "./host.ts";
import { createHostLinks, type HostLink } from "./host-links.ts";
import { createHostWork } from "./host-reconciler.ts";
import { createMachinePlacement } from "./machine-placement.ts";

const gib = 1024 ** 3;
const signal = new AbortController().signal;
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
const { isolation, reason } = await detectAbilities();

const connected: SessionFacts = {
  controllerId: "c",
  connectedAt: 0,
  agentVersion: "",
  agentDigest: "",
  keeperProtocol: 0,
  bootId: "",
};

/** A host over the wire that can be cut: then whatever it is asked fails, and nothing of it is heard. */
function cuttable(provider: ComputeProvider, isCut: () => boolean): HostLink {
  const refused = () => Promise.reject(new HostUnreachable("b", "connection refused"));
  const link: HostLink = { ...provider, facts: async () => testHostFacts, close() {} };
  return new Proxy(link, {
    get(target, name: keyof HostLink) {
      const method = target[name];
      return isCut() && typeof method === "function" && name !== "watch" && name !== "close" ? refused : method;
    },
  });
}

describe.skipIf(isolation === "none")(`two hosts${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let etcd: TestEtcd;
  let store: Store;
  let a: TestMachines;
  let b: TestMachines;
  let cut = false;
  let mayBeBehind = false;
  const sessions = new Map<string, SessionFacts>();
  const open: { close(): unknown }[] = [];
  const runners: Runner[] = [];
  const begin = () => createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock: systemClock, ids: uuidv7 });

  interface Controller {
    readonly machines: Collection<MachineObject>;
    readonly hosts: Collection<HostObject>;
    readonly provider: HostsProvider;
    readonly placement: ReturnType<typeof createMachinePlacement>;
  }
  let one: Controller;

  /** What a controller has of hosts and machines, with a memory of its own. */
  async function openController(): Promise<Controller & { readonly runner: Runner }> {
    const machines = createCollection<MachineObject>(store, "machine");
    const hosts = createCollection<HostObject>(store, "host");
    await Promise.all([machines.ready, hosts.ready]);
    const links = createHostLinks({
      hosts,
      own: new Map([["a", cuttable(a.provider, () => false)]]),
      connect: () => cuttable(b.provider, () => cut),
    });
    const provider = createHostsProvider({
      hosts: links.all,
      onHosts: links.subscribe,
      hostOf: (id) => machines.get(id)?.object.spec.hostId,
    });
    const placement = createMachinePlacement({ hosts, machines, provider, begin, storeMayBeBehind: () => mayBeBehind });
    const work = createMachineWork({
      provider,
      hosts,
      placement,
      machines,
      begin,
      sealer,
      clock: systemClock,
      log: silentLog,
      installationId: "i",
      caFingerprint: () => "ff",
      controllers: () => [],
      session: (id) => sessions.get(id),
      onSession: () => ({ close() {} }),
    });
    const probes = createHostWork({
      hosts,
      machines,
      links,
      begin,
      clock: systemClock,
      log: silentLog,
      askEveryMs: 100,
    });
    open.push(machines, hosts, links);
    const runner = createRunner({
      reconciled: [work, probes],
      ownership: soleOwner,
      clock: systemClock,
      log: silentLog,
      random: Math.random,
    });
    return { machines, hosts, provider, placement, runner };
  }

  beforeAll(async () => {
    [etcd, a, b] = await Promise.all([
      startTestEtcd(),
      startTestMachines({ loopbackBlock: "127.97" }),
      startTestMachines({ loopbackBlock: "127.98" }),
    ]);
    store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
    const unit = begin();
    unit.create("host", readyHost("a", { address: "" }));
    unit.create("host", readyHost("b"));
    await unit.commit();
    const first = await openController();
    first.runner.start();
    runners.push(first.runner);
    one = first;
  });
  afterAll(async () => {
    for (const runner of runners) await runner.stop();
    for (const each of open) each.close();
    await store.close();
    await Promise.all([a.close(), b.close()]);
    await etcd.stop();
  });

  const machineObject = (spec: Partial<MachineSpecObject> = {}): MachineObject => {
    const id = randomUUID();
    return {
      metadata: { id, name: id, organizationId: "o", generation: 1, createdAt: 0, updatedAt: 0 },
      spec: {
        owner: { kind: "managed-service", id: `s-${id}` },
        engine: "postgresql",
        version: "17",
        image: "",
        vcpu: 1,
        memoryBytes: gib,
        diskBytes: gib,
        zone: "local",
        hostId: null,
        storageTier: "maxiops",
        apart: "preferred",
        power: "on",
        serverNames: [],
        ...spec,
      },
      status: { state: "pending", reason: "", address: "", publicAddress: "", enrollment: null, certificate: null },
    };
  };
  async function newMachine(spec: Partial<MachineSpecObject> = {}): Promise<string> {
    const object = machineObject(spec);
    const unit = begin();
    unit.create("machine", object);
    await unit.commit();
    return object.metadata.id;
  }
  async function forgetAll(objects: readonly MachineObject[]): Promise<void> {
    for (const { metadata } of objects) {
      const stored = await one.machines.fresh(metadata.id);
      const unit = begin();
      if (stored !== undefined) unit.remove("machine", stored);
      await unit.commit();
    }
  }
  async function change<R extends HostObject | MachineObject>(
    kind: "host" | "machine",
    collection: Collection<R>,
    id: string,
    edit: (object: R) => R,
  ): Promise<void> {
    await retryConflict(signal, async () => {
      const before = await collection.fresh(id);
      if (before === undefined) throw new Error("it is there");
      const unit = begin();
      unit.update(kind, before, edit(before.object));
      await unit.commit();
    });
  }
  const editHost = (id: string, spec: Partial<HostObject["spec"]>) =>
    change("host", one.hosts, id, (object) => withHostSpec(object, spec, 1));
  const remove = (id: string) =>
    change("machine", one.machines, id, (object) => ({
      ...object,
      metadata: { ...object.metadata, deletionRequestedAt: 1 },
    }));
  const object = (id: string) => one.machines.get(id)?.object;
  const becomes = (id: string, state: string | undefined) =>
    expect.poll(() => object(id)?.status.state, { timeout: 30_000 }).toBe(state);
  const hostBecomes = (id: string, state: string) =>
    expect.poll(() => one.hosts.get(id)?.object.status.state, { timeout: 30_000 }).toBe(state);

  it("puts members of a service on different hosts, and each machine only where its object says", async () => {
    const owner = { kind: "managed-service", id: "pair" };
    const first = await newMachine({ owner });
    await becomes(first, "running");
    const second = await newMachine({ owner });
    await becomes(second, "running");
    const [x, y] = [object(first)?.spec.hostId, object(second)?.spec.hostId];
    expect([x, y].sort()).toEqual(["a", "b"]);
    expect(await one.provider.on(x as string).get(first, signal)).toMatchObject({ state: "running" });
    expect(await one.provider.on(y as string).get(first, signal)).toBeUndefined();
    for (const id of [first, second]) await remove(id);
    for (const id of [first, second]) await becomes(id, undefined);
  });

  it("says what is short when no host can take a machine, and makes it when one can", async () => {
    await editHost("a", { cordoned: true });
    await editHost("b", { cordoned: true });
    const id = await newMachine();
    await becomes(id, "failed");
    expect(object(id)?.status.reason).toBe("No host of zone local can take it. a: it is cordoned. b: it is cordoned.");
    expect(object(id)?.spec.hostId).toBeNull();
    await editHost("a", { cordoned: false });
    await becomes(id, "running");
    expect(object(id)?.spec.hostId).toBe("a");
    await editHost("b", { cordoned: false });
    await remove(id);
    await becomes(id, undefined);
  });

  it("never promises a host more than it may, whichever controllers place at once", async () => {
    const other = await openController();
    // Room for five machines on each.
    for (const id of ["a", "b"]) await editHost(id, { memoryOvercommit: 5 / 64 });
    const objects = Array.from({ length: 14 }, () => machineObject());
    // Not seen by the reconcilers: those who place here are the two that are asked.
    await runners[0]?.stop();
    for (const each of objects) {
      const unit = begin();
      unit.create("machine", each);
      await unit.commit();
    }
    const placed = await Promise.allSettled(
      objects.map(({ metadata }, index) => (index % 2 === 0 ? one : other).placement.place(metadata.id, signal)),
    );
    const results = await Promise.all(objects.map(({ metadata }) => one.machines.fresh(metadata.id)));
    const on = (hostId: string | null) => results.filter((stored) => stored?.object.spec.hostId === hostId).length;
    expect([on("a"), on("b"), on(null)]).toEqual([5, 5, 4]);
    const refused = placed.filter((each) => each.status === "rejected").map((each) => String(each.reason));
    expect(refused).toHaveLength(4);
    for (const each of refused) expect(each).toMatch(/1\.0 GiB of memory were asked for, and 5\.0 GiB of 64\.0 GiB/);
    await forgetAll(objects);

    // Nor by claims: of eight that wait on one host, it has room for five of the size that is wanted.
    const ahead = Array.from({ length: 8 }, () =>
      machineObject({ owner: null, hostId: "a", memoryBytes: gib / 8, image: "i" }),
    ).map((each) => ({ ...each, status: { ...each.status, state: "waiting" as const, address: "127.97.0.9" } }));
    for (const each of ahead) {
      const unit = begin();
      unit.create("machine", each);
      const revision = await unit.commit();
      await Promise.all([one, other].map(({ machines }) => machines.reached(revision, 5_000)));
    }
    // Each controller knows others of them to be free, so that only the host's room is what they both want.
    const knownTo = ({ machines, hosts }: Controller, parity: number) => {
      const mine = new Set(ahead.filter((_, index) => index % 2 === parity).map(({ metadata }) => metadata.id));
      const session = (id: string) => (mine.has(id) ? connected : undefined);
      const fleet = { session, observation: () => undefined };
      return createWaitingMachines({ machines, hosts, fleet, held: () => false, now: systemClock.now });
    };
    const [evens, odds] = [knownTo(one, 0), knownTo(other, 1)];
    const claim = (waiting: WaitingMachines, id: string) =>
      retryConflict(signal, async () => {
        const { spec } = machineObject({ owner: { kind: "managed-service", id } });
        const taken = await waiting.take(spec, signal);
        if (taken === undefined) return undefined;
        const unit = begin();
        const owner = { organizationId: "o", name: id, spec };
        unit.update("machine", taken.machine, claimedMachine(taken.machine.object, owner, systemClock.now()));
        if (taken.promise !== undefined) unit.update("host", taken.promise.of, taken.promise.after);
        await unit.commit().finally(taken.giveBack);
        return taken.machine.object.metadata.id;
      });
    const claimed = await Promise.all(ahead.map((_, index) => claim(index % 2 === 0 ? evens : odds, `c-${index}`)));
    expect(new Set(claimed.filter((id) => id !== undefined)).size).toBe(5);
    expect(claimed.filter((id) => id === undefined)).toHaveLength(3);
    await forgetAll(ahead);
    for (const id of ["a", "b"]) await editHost(id, { memoryOvercommit: 2 });
    const again = await openController();
    one = again;
    runners[0] = again.runner;
    again.runner.start();
  });

  it("finds a machine where it is when the store was set back to before it was placed", async () => {
    const id = await newMachine({ zone: "local" });
    await becomes(id, "running");
    const generation = object(id)?.metadata.generation ?? 0;
    const hostId = object(id)?.spec.hostId;
    mayBeBehind = true;
    // The other host is the emptier one now, and would be chosen.
    await editHost(hostId as string, { memoryOvercommit: 1 });
    await change("machine", one.machines, id, (before) => ({
      ...before,
      spec: { ...before.spec, hostId: null },
      status: { ...before.status, state: "pending", address: "" },
    }));
    // The memory may not have seen the reset yet; a placement raises the generation.
    await expect.poll(() => object(id)?.metadata.generation, { timeout: 30_000 }).toBeGreaterThan(generation);
    await becomes(id, "running");
    expect(object(id)?.spec.hostId).toBe(hostId);
    expect(await one.provider.get(id, signal)).toMatchObject({ starts: 1 });
    mayBeBehind = false;
    await remove(id);
    await becomes(id, undefined);
  });

  it("shows the machines of a lost host as unreachable, and adopts them as they run when it is back", async () => {
    await editHost("a", { cordoned: true });
    const [stays, goes, heard] = [await newMachine(), await newMachine(), await newMachine()];
    for (const id of [stays, goes, heard]) await becomes(id, "running");
    sessions.set(heard, connected);
    await editHost("a", { cordoned: false });

    cut = true;
    await hostBecomes("b", "unreachable");
    await becomes(stays, "unreachable");
    expect(object(stays)?.status.reason).toMatch(/^Host b does not answer/);
    // Its agent is heard: the machine runs, whatever its host does not say.
    expect(object(heard)?.status.state).toBe("running");
    await remove(goes);
    await becomes(goes, "destroying");
    await expect.poll(() => object(goes)?.status.reason).toMatch(/^Host b does not answer/);

    const sweep = createOrphanSweep({
      provider: one.provider,
      machines: one.machines,
      store,
      objectsReady: one.machines.ready,
      holds: { list: () => [] },
      clock: systemClock,
      log: silentLog,
    });
    expect(await sweep.sweep({ dryRun: false }, signal)).toEqual([]);
    const elsewhere = await newMachine();
    await becomes(elsewhere, "running");
    expect(object(elsewhere)?.spec.hostId).toBe("a");
    expect(await a.provider.get(stays, signal)).toBeUndefined();
    expect(await b.provider.get(goes, signal)).toBeDefined();

    cut = false;
    await hostBecomes("b", "ready");
    await becomes(stays, "running");
    await becomes(goes, undefined);
    expect(object(stays)?.status.reason).toBe("");
    expect(await b.provider.get(stays, signal)).toMatchObject({ starts: 1 });
    expect(await b.provider.get(goes, signal)).toBeUndefined();
    for (const id of [stays, heard, elsewhere]) await remove(id);
    for (const id of [stays, heard, elsewhere]) await becomes(id, undefined);
  });

  it("takes a twin on another host than its object's for an orphan", async () => {
    const id = await newMachine();
    await becomes(id, "running");
    const other = object(id)?.spec.hostId === "a" ? "b" : "a";
    const spec = {
      id,
      installationId: "i",
      plan: { vcpu: 1, memoryBytes: gib },
      diskBytes: gib,
      zone: "local",
      storageTier: "maxiops",
    };
    await one.provider.on(other).create({ ...spec, engine: "postgresql", version: "17" }, signal);
    const sweep = createOrphanSweep({
      provider: one.provider,
      machines: one.machines,
      store,
      objectsReady: one.machines.ready,
      holds: { list: () => [] },
      clock: systemClock,
      log: silentLog,
    });
    const swept = await sweep.sweep({ dryRun: false }, signal);
    expect(swept).toMatchObject([{ machineId: id, hostId: other, action: "destroyed" }]);
    expect(await one.provider.get(id, signal)).toMatchObject({ state: "running", starts: 1 });
    await remove(id);
    await becomes(id, undefined);
  });

  it("keeps only the object of what was on a destroyed host, until its owner deletes it", async () => {
    await editHost("a", { cordoned: true });
    const [owned, free] = [await newMachine(), await newMachine()];
    for (const id of [owned, free]) await becomes(id, "running");
    await change("machine", one.machines, free, (before) => ({ ...before, spec: { ...before.spec, owner: null } }));
    cut = true;
    await editHost("b", { destroyedAt: 1 });
    await becomes(owned, "failed");
    expect(object(owned)?.status.reason).toMatch(/Host b was destroyed, and what was on it is lost/);
    await becomes(free, undefined);
    await remove(owned);
    await becomes(owned, undefined);
    await expect.poll(() => one.hosts.get("b"), { timeout: 30_000 }).toBeUndefined();
  });
});
