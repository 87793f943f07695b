import type { HoldfastError } from "@holdfast/common/errors.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runningMachine } from "../../../../test/support/machines/machine-object.ts";
import { readyHost, rootedTier } from "../../../../test/support/platform/ready-host.ts";
import { startTestStore, type TestStore } from "../../../../test/support/controller/test-store.ts";
import { type Collections, createCollections } from "../../../../test/support/controller/test-collections.ts";
import { hostKind, type HostObject } from "../host/host.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import { machineKind, type MachineObject, type MachineSize } from "../machine/machine.ts";
import { resizeMachine } from "./resize-machine.ts";

const gib = 1024 ** 3;
const signal = new AbortController().signal;

describe("a machine that is to have another size", () => {
  let kept: TestStore;
  /** Two controllers' memories of it. */
  let one: Collections;
  let other: Collections;
  const begin = () => kept.begin();

  beforeAll(async () => {
    kept = await startTestStore();
    one = kept.collections;
    other = createCollections(kept.store);
    await other.ready;
  });
  afterAll(async () => {
    other?.close();
    await kept?.close();
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
      await Promise.all([machines.reached(revision, 60_000), hosts.reached(revision, 60_000)]);
  }
  const resize = (memory: Collections, id: string, to: MachineSize) =>
    retryConflict(signal, async () => {
      const unit = begin();
      await resizeMachine(id, to, unit, memory, signal);
      await unit.commit();
    });
  const memoryOf = async (id: string) => (await one.machines.fresh(id))?.object.spec.memoryBytes;

  it("gets the last room of its host or is told the figures, one of two whichever controllers are asked", async () => {
    // 4 GiB to promise; what waits for an owner makes room for those that have one.
    await create(readyHost("a", { memoryOvercommit: 4 / 64 }), machine("x", "a"), machine("y", "a"));
    await create(...Array.from({ length: 4 }, (_, index) => machine(`w-${index}`, "a", false)));
    for (let round = 0; round < 10; round += 1) {
      const outcomes = await Promise.allSettled([resize(one, "x", size(3)), resize(other, "y", size(3))]);
      const refused = outcomes.flatMap((each) => (each.status === "rejected" ? [each.reason as HoldfastError] : []));
      expect(refused).toHaveLength(1);
      expect(refused[0]).toMatchObject({ key: "NOT_POSSIBLE" });
      expect(refused[0]?.detail).toMatch(
        /^Host a, .* 3\.0 GiB of memory were asked for, and 3\.0 GiB of 64\.0 GiB times 0\.0625 are promised\. Ask for less, or have an operator make room there/,
      );
      const sizes = await Promise.all(["x", "y"].map(memoryOf));
      expect(sizes.toSorted()).toEqual([gib, 3 * gib]);
      // What one gives back the other can have.
      const [large, small] = sizes[0] === gib ? ["y", "x"] : ["x", "y"];
      await resize(other, large, size(1));
      await resize(one, small, size(3));
      await resize(other, small, size(1));
    }
  });

  it("grows beside a machine that is placed at that moment, or is told that it has the room", async () => {
    const host = readyHost("b", { memoryOvercommit: 4 / 64 });
    await create(host, machine("p", "b"));
    const stored = await one.hosts.fresh("b");
    const unit = begin();
    await resizeMachine("p", size(4), unit, one, signal);
    // As a placement does it: with a promise on the host.
    const placement = begin();
    placement.create(machineKind, machine("q", "b"));
    if (stored !== undefined)
      placement.update(hostKind, stored, { ...host, status: { ...host.status, placements: 1 } });
    await placement.commit();
    await expect(unit.commit()).rejects.toMatchObject({ name: "Conflict" });
    await expect(resize(one, "p", size(4))).rejects.toThrow("1.0 GiB of 64.0 GiB times 0.0625 are promised");
  });

  it("leaves the object of a host alone where nothing but what is free counts", async () => {
    await create(readyHost("c", { memoryOvercommit: null }), machine("f", "c"));
    await resize(one, "f", size(500));
    expect((await one.hosts.fresh("c"))?.object.status.placements).toBe(0);
    await expect(resize(one, "f", size(500, 2_000))).rejects.toThrow("The host's disk has 1000.0 GiB in all");
  });

  it("is told what its host's pool lacks for a larger root, as long as there is another's in it", async () => {
    const host = readyHost("d", { diskOvercommit: 1 }, { tiers: [rootedTier()] });
    await create(host, machine("g", "d"), machine("h", "d"));
    const rooted = (rootGb: number): MachineSize => ({ ...size(1), rootBytes: rootGb * gib });
    await expect(resize(one, "g", rooted(17))).rejects.toThrow(
      "Host d, which has the machine, cannot let it grow: 17.0 GiB of root were asked for, and 4.0 GiB of 20.0 GiB times 1 are promised.",
    );
    await resize(one, "g", rooted(16));
    await expect(resize(other, "h", rooted(5))).rejects.toMatchObject({ key: "NOT_POSSIBLE" });
  });

  it("is counted where it will be when it was not placed yet, and never gets a smaller disk", async () => {
    await create(machine("u", null));
    await resize(one, "u", size(64, 10));
    expect(await memoryOf("u")).toBe(64 * gib);
    await expect(resize(one, "u", size(64, 9))).rejects.toThrow("can only grow");
    // Nor a smaller root, with whatever plan.
    await resize(one, "u", { ...size(64, 10), rootBytes: 8 * gib });
    await resize(one, "u", size(64, 10));
    expect((await one.machines.fresh("u"))?.object.spec.rootBytes).toBe(8 * gib);
    await expect(resize(one, "nobody", size(1))).rejects.toMatchObject({ key: "OBJECT_NOT_FOUND" });
  });
});
