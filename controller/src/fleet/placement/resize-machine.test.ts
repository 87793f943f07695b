import type { HoldfastError } from "@holdfast/common/errors.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { readyHost, rootedTier } from "@holdfast/testing/platform/ready-host.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { type Collections, createCollections } from "@holdfast/testing/controller/test-collections.ts";
import { hostKind, type HostObject } from "../host/host.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import { machineKind, type MachineObject, type MachineSize } from "../machine/machine.ts";
import { resizeMachine } from "./resize-machine.ts";

const gib = 1024 ** 3;
const signal = new AbortController().signal;

describe("resizing a machine", () => {
  let store: TestStore;
  /** The caches of two controllers. */
  let one: Collections;
  let other: Collections;
  const begin = () => store.begin();

  beforeAll(async () => {
    store = await startTestStore();
    one = store.collections;
    other = createCollections(store.store);
    await other.ready;
  });
  afterAll(async () => {
    other?.close();
    await store?.close();
  });

  const size = (memoryGb: number, diskGb = 1): MachineSize => ({
    vcpu: 1,
    memoryBytes: memoryGb * gib,
    rootBytes: 4 * gib,
    diskBytes: diskGb * gib,
  });
  const machine = (id: string, hostId: string | null, isOwned = true): MachineObject =>
    runningMachine(id, { owner: isOwned ? { kind: "managed-service", id: `s-${id}` } : null, ...size(1), hostId });
  async function create(...objects: (MachineObject | HostObject)[]): Promise<void> {
    const unit = begin();
    for (const object of objects) {
      if ("address" in object.spec) unit.create(hostKind, object as HostObject);
      else unit.create(machineKind, object as MachineObject);
    }
    const revision = await unit.commit();
    for (const { machines, hosts } of [one, other])
      await Promise.all([machines.untilRevision(revision, 60_000), hosts.untilRevision(revision, 60_000)]);
  }
  const resize = (memory: Collections, id: string, to: MachineSize) =>
    retryConflict(signal, async () => {
      const unit = begin();
      await resizeMachine(id, to, unit, memory, signal);
      await unit.commit();
    });
  const memoryOf = async (id: string) => (await one.machines.getCurrent(id))?.object.spec.memoryBytes;

  it("gives a host's last capacity to one of two concurrent requests at any controllers", async () => {
    // 4 GiB can be reserved; machines of the warm pool do not count.
    await create(readyHost("a", { memoryOvercommit: 4 / 64 }), machine("x", "a"), machine("y", "a"));
    await create(...Array.from({ length: 4 }, (_, index) => machine(`w-${index}`, "a", false)));
    for (let round = 0; round < 10; round += 1) {
      const outcomes = await Promise.allSettled([resize(one, "x", size(3)), resize(other, "y", size(3))]);
      const refused = outcomes.flatMap((each) => (each.status === "rejected" ? [each.reason as HoldfastError] : []));
      expect(refused).toHaveLength(1);
      expect(refused[0]).toMatchObject({ key: "NOT_POSSIBLE" });
      expect(refused[0]?.detail).toMatch(
        /^Host a has no capacity for the larger machine: 3\.0 GiB of memory are requested, and 3\.0 GiB of 64\.0 GiB times 0\.0625 are reserved\. Choose a smaller size, or have an operator free capacity/,
      );
      const sizes = await Promise.all(["x", "y"].map(memoryOf));
      expect(sizes.toSorted()).toEqual([gib, 3 * gib]);
      // Capacity that one machine releases is available to the other.
      const [large, small] = sizes[0] === gib ? ["y", "x"] : ["x", "y"];
      await resize(other, large, size(1));
      await resize(one, small, size(3));
      await resize(other, small, size(1));
    }
  });

  it("and a concurrent placement never exceed the host's capacity together", async () => {
    const host = readyHost("b", { memoryOvercommit: 4 / 64 });
    await create(host, machine("p", "b"));
    const stored = await one.hosts.getCurrent("b");
    const unit = begin();
    await resizeMachine("p", size(4), unit, one, signal);
    // Like a placement: with a reservation on the host.
    const placement = begin();
    placement.create(machineKind, machine("q", "b"));
    if (stored !== undefined)
      placement.update(hostKind, stored, { ...host, status: { ...host.status, placements: 1 } });
    await placement.commit();
    await expect(unit.commit()).rejects.toMatchObject({ name: "Conflict" });
    await expect(resize(one, "p", size(4))).rejects.toThrow("1.0 GiB of 64.0 GiB times 0.0625 are reserved");
  });

  it("does not change the host's object without a reservation limit", async () => {
    await create(readyHost("c", { memoryOvercommit: null }), machine("f", "c"));
    await resize(one, "f", size(500));
    expect((await one.hosts.getCurrent("c"))?.object.status.placements).toBe(0);
    await expect(resize(one, "f", size(500, 2_000))).rejects.toThrow("The host's disk has 1000.0 GiB in all");
  });

  it("is refused with the shortage of the host's pool for roots", async () => {
    const host = readyHost("d", { diskOvercommit: 1 }, { tiers: [rootedTier()] });
    await create(host, machine("g", "d"), machine("h", "d"));
    const rooted = (rootGb: number): MachineSize => ({ ...size(1), rootBytes: rootGb * gib });
    await expect(resize(one, "g", rooted(17))).rejects.toThrow(
      "Host d has no capacity for the larger machine: 17.0 GiB of root are requested, and 4.0 GiB of 20.0 GiB times 1 are reserved.",
    );
    await resize(one, "g", rooted(16));
    await expect(resize(other, "h", rooted(5))).rejects.toMatchObject({ key: "NOT_POSSIBLE" });
  });

  it("changes the spec before placement, and never shrinks a disk", async () => {
    await create(machine("u", null));
    await resize(one, "u", size(64, 10));
    expect(await memoryOf("u")).toBe(64 * gib);
    await expect(resize(one, "u", size(64, 9))).rejects.toThrow("can only grow");
    // A root never shrinks either.
    await resize(one, "u", { ...size(64, 10), rootBytes: 8 * gib });
    await resize(one, "u", size(64, 10));
    expect((await one.machines.getCurrent("u"))?.object.spec.rootBytes).toBe(8 * gib);
    await expect(resize(one, "nobody", size(1))).rejects.toMatchObject({ key: "OBJECT_NOT_FOUND" });
  });
});
