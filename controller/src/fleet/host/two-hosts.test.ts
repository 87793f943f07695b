import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { machineObject } from "@holdfast/testing/machines/machine-object.ts";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import { type HostsController, startTwoHosts, type TwoHosts } from "@holdfast/testing/platform/two-hosts.ts";
import { detectAbilities } from "@holdfast/compute/local/host-abilities.ts";
import type { SessionFacts } from "../session/session-facts.ts";
import { createOrphanSweep } from "../machine/orphan-sweep.ts";
import { claimedMachine, createWarmPool, type WarmPool } from "../warm-pool/warm-pool.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import { hostKind } from "./host.ts";
import { machineKind } from "../machine/machine.ts";

const gib = 1024 ** 3;
const signal = new AbortController().signal;
const { isolation, reason } = await detectAbilities();

const connected: SessionFacts = {
  controllerId: "c",
  connectedAt: 0,
  agentVersion: "",
  agentDigest: "",
  keeperProtocol: 0,
  bootId: "",
};

describe.skipIf(isolation === "none")(`two hosts${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let two: TwoHosts;
  beforeAll(async () => {
    two = await startTwoHosts();
  });
  afterAll(() => two?.close());

  const sweep = () =>
    createOrphanSweep({
      provider: two.active.provider,
      machines: two.active.machines,
      store: two.store,
      objectsReady: two.active.machines.ready,
      automationPauses: { list: () => [] },
      clock: systemClock,
      log: silentLog,
    }).sweep({ dryRun: false }, signal);

  it("places members of a service on different hosts, each only on the host of its object", async () => {
    const owner = { kind: "managed-service", id: "pair" };
    const first = await two.newMachine({ owner });
    await two.becomes(first, "running");
    const second = await two.newMachine({ owner });
    await two.becomes(second, "running");
    const [x, y] = [two.object(first)?.spec.hostId, two.object(second)?.spec.hostId];
    expect([x, y].sort()).toEqual(["a", "b"]);
    expect(await two.active.provider.on(x as string).get(first, signal)).toMatchObject({ state: "running" });
    expect(await two.active.provider.on(y as string).get(first, signal)).toBeUndefined();
    for (const id of [first, second]) await two.remove(id);
    for (const id of [first, second]) await two.becomes(id, undefined);
  });

  it("reports the shortage when no host has capacity, and creates the machine when one has", async () => {
    await two.editHost("a", { cordoned: true });
    await two.editHost("b", { cordoned: true });
    const id = await two.newMachine();
    await two.becomes(id, "failed");
    expect(two.object(id)?.status.reason).toBe(
      "No host of zone local can take it. a: it is cordoned. b: it is cordoned.",
    );
    expect(two.object(id)?.spec.hostId).toBeNull();
    await two.editHost("a", { cordoned: false });
    await two.becomes(id, "running");
    expect(two.object(id)?.spec.hostId).toBe("a");
    await two.editHost("b", { cordoned: false });
    await two.remove(id);
    await two.becomes(id, undefined);
  });

  it("never exceeds a host's limit under concurrent placements of two controllers", async () => {
    const other = await two.openController();
    // Capacity for five machines on each.
    for (const id of ["a", "b"]) await two.editHost(id, { memoryOvercommit: 5 / 64 });
    const objects = Array.from({ length: 14 }, () => machineObject());
    // Without reconcilers: only the two placements below run.
    await two.active.runner.stop();
    for (const each of objects) {
      const unit = two.begin();
      unit.create(machineKind, each);
      await unit.commit();
    }
    const placed = await Promise.allSettled(
      objects.map(({ metadata }, index) => (index % 2 === 0 ? two.active : other).placement.place(metadata.id, signal)),
    );
    const results = await Promise.all(objects.map(({ metadata }) => two.active.machines.getCurrent(metadata.id)));
    const on = (hostId: string | null) => results.filter((stored) => stored?.object.spec.hostId === hostId).length;
    expect([on("a"), on("b"), on(null)]).toEqual([5, 5, 4]);
    const refused = placed.filter((each) => each.status === "rejected").map((each) => String(each.reason));
    expect(refused).toHaveLength(4);
    for (const each of refused) expect(each).toMatch(/1\.0 GiB of memory are requested, and 5\.0 GiB of 64\.0 GiB/);
    await two.forgetAll(objects);

    // Claims as well: of eight pooled machines on one host, five can have the requested size.
    const ahead = Array.from({ length: 8 }, () =>
      machineObject({ owner: null, hostId: "a", memoryBytes: gib / 8, image: "i" }),
    ).map((each) => ({ ...each, status: { ...each.status, state: "waiting" as const, address: "127.97.0.9" } }));
    for (const each of ahead) {
      const unit = two.begin();
      unit.create(machineKind, each);
      const revision = await unit.commit();
      await Promise.all([two.active, other].map(({ machines }) => machines.untilRevision(revision, 60_000)));
    }
    // Each controller sees different machines as free, so they compete for the host's capacity only.
    const knownTo = ({ machines, hosts }: HostsController, parity: number) => {
      const mine = new Set(ahead.filter((_, index) => index % 2 === parity).map(({ metadata }) => metadata.id));
      const session = (id: string) => (mine.has(id) ? connected : undefined);
      const fleet = { session, observation: () => undefined };
      return createWarmPool({ machines, hosts, fleet, isPaused: () => false, now: systemClock.now });
    };
    const [evens, odds] = [knownTo(two.active, 0), knownTo(other, 1)];
    const claim = (waiting: WarmPool, id: string) =>
      retryConflict(signal, async () => {
        const { spec } = machineObject({ owner: { kind: "managed-service", id } });
        const taken = await waiting.take(spec, signal);
        if (taken === undefined) return undefined;
        const unit = two.begin();
        const owner = { organizationId: "o", name: id, spec };
        unit.update(machineKind, taken.machine, claimedMachine(taken.machine.object, owner, systemClock.now()));
        if (taken.reservation !== undefined) unit.update(hostKind, taken.reservation.of, taken.reservation.after);
        await unit.commit().finally(taken.release);
        return taken.machine.object.metadata.id;
      });
    const claimed = await Promise.all(ahead.map((_, index) => claim(index % 2 === 0 ? evens : odds, `c-${index}`)));
    expect(new Set(claimed.filter((id) => id !== undefined)).size).toBe(5);
    expect(claimed.filter((id) => id === undefined)).toHaveLength(3);
    await two.forgetAll(ahead);
    for (const id of ["a", "b"]) await two.editHost(id, { memoryOvercommit: 2 });
    two.active = await two.openController();
    two.active.runner.start();
  });

  it("finds an existing machine after a restore of the store from before its placement", async () => {
    const id = await two.newMachine({ zone: "local" });
    await two.becomes(id, "running");
    const generation = two.object(id)?.metadata.generation ?? 0;
    const hostId = two.object(id)?.spec.hostId;
    two.storeMayLag = true;
    // The other host has more free capacity now and would be chosen.
    await two.editHost(hostId as string, { memoryOvercommit: 1 });
    await two.changeMachine(id, (before) => ({
      ...before,
      spec: { ...before.spec, hostId: null },
      status: { ...before.status, state: "pending", address: "" },
    }));
    // The cache may not have the reset yet; a placement raises the generation.
    await expect.poll(() => two.object(id)?.metadata.generation).toBeGreaterThan(generation);
    await two.becomes(id, "running");
    expect(two.object(id)?.spec.hostId).toBe(hostId);
    expect(await two.active.provider.get(id, signal)).toMatchObject({ starts: 1 });
    two.storeMayLag = false;
    await two.remove(id);
    await two.becomes(id, undefined);
  });

  it("reports machines of an unreachable host as unreachable, and adopts them on its return", async () => {
    await two.editHost("a", { cordoned: true });
    const [stays, goes, replied] = [await two.newMachine(), await two.newMachine(), await two.newMachine()];
    for (const id of [stays, goes, replied]) await two.becomes(id, "running");
    two.sessions.set(replied, connected);
    await two.editHost("a", { cordoned: false });

    two.cut = true;
    await two.hostBecomes("b", "unreachable");
    await two.becomes(stays, "unreachable");
    expect(two.object(stays)?.status.reason).toMatch(/^Host b does not respond/);
    // Its agent is connected, so the machine runs, although its host does not respond.
    expect(two.object(replied)?.status.state).toBe("running");
    await two.remove(goes);
    await two.becomes(goes, "destroying");
    await expect.poll(() => two.object(goes)?.status.reason).toMatch(/^Host b does not respond/);

    expect((await sweep()).orphans).toEqual([]);
    const elsewhere = await two.newMachine();
    await two.becomes(elsewhere, "running");
    expect(two.object(elsewhere)?.spec.hostId).toBe("a");
    expect(await two.a.provider.get(stays, signal)).toBeUndefined();
    expect(await two.b.provider.get(goes, signal)).toBeDefined();

    two.cut = false;
    await two.hostBecomes("b", "ready");
    await two.becomes(stays, "running");
    await two.becomes(goes, undefined);
    expect(two.object(stays)?.status.reason).toBe("");
    expect(await two.b.provider.get(stays, signal)).toMatchObject({ starts: 1 });
    expect(await two.b.provider.get(goes, signal)).toBeUndefined();
    for (const id of [stays, replied, elsewhere]) await two.remove(id);
    for (const id of [stays, replied, elsewhere]) await two.becomes(id, undefined);
  });

  it("treats a copy on another host than its object's as an orphan", async () => {
    const id = await two.newMachine();
    await two.becomes(id, "running");
    const other = two.object(id)?.spec.hostId === "a" ? "b" : "a";
    await two.active.provider.on(other).create(testMachineSpec({ id, installationId: "i" }), signal);
    const { orphans: swept } = await sweep();
    expect(swept).toMatchObject([{ machineId: id, hostId: other, action: "destroyed" }]);
    expect(await two.active.provider.get(id, signal)).toMatchObject({ state: "running", starts: 1 });
    await two.remove(id);
    await two.becomes(id, undefined);
  });

  it("retains the object of a machine on a destroyed host for owners that cannot replace it", async () => {
    await two.editHost("a", { cordoned: true });
    const [owned, free, cached] = [await two.newMachine(), await two.newMachine(), await two.newMachine()];
    for (const id of [owned, free, cached]) await two.becomes(id, "running");
    const owner = { kind: "cache", id: "c" };
    await two.changeMachine(cached, (before) => ({ ...before, spec: { ...before.spec, owner } }));
    await two.changeMachine(free, (before) => ({ ...before, spec: { ...before.spec, owner: null } }));
    two.cut = true;
    await two.editHost("b", { destroyedAt: 1 });
    await two.becomes(owned, "failed");
    expect(two.object(owned)?.status.reason).toMatch(
      /Host b was destroyed, and the data on it is lost\. Delete the service\.$/,
    );
    await two.becomes(free, undefined);
    await two.becomes(cached, undefined);
    await two.remove(owned);
    await two.becomes(owned, undefined);
    await expect.poll(() => two.active.hosts.get("b")).toBeUndefined();
  });
});
