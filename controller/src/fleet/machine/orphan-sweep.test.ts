import { randomUUID } from "node:crypto";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { testMachineSpec } from "@holdfast/testing/machines/machine-spec.ts";
import { startTestMachines, type TestMachines } from "@holdfast/testing/machines/process-machines.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";
import { detectAbilities } from "@holdfast/compute/local/host-abilities.ts";
import { createHostsProvider } from "@holdfast/compute/router/hosts-provider.ts";
import { createOrphanSweep, type OrphanSweep } from "./orphan-sweep.ts";
import { machineKind } from "./machine.ts";

const dayMs = 86_400_000;
const signal = new AbortController().signal;
const { isolation, reason } = await detectAbilities();

describe.skipIf(isolation === "none")(`orphans${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  let testStore: TestStore;
  let machines: TestMachines;
  let aheadMs = 0;
  const clock = { now: () => Date.now() + aheadMs, monotonicMs: systemClock.monotonicMs };

  beforeAll(async () => {
    [testStore, machines] = await Promise.all([startTestStore(), startTestMachines()]);
  });
  afterEach(() => {
    aheadMs = 0;
  });
  afterAll(async () => {
    await machines?.close();
    await testStore?.close();
  });

  /** A sweep of these hosts, and its actions by host and machine. */
  function sweeping(hosts: ReadonlyMap<string, ComputeProvider>, automationPauses: () => readonly string[] = () => []) {
    const { store, collections } = testStore;
    const sweep: OrphanSweep = createOrphanSweep({
      provider: createHostsProvider({
        hosts: () => hosts,
        hostOf: (id) => collections.machines.get(id)?.object.spec.hostId,
      }),
      machines: collections.machines,
      store,
      objectsReady: collections.ready,
      automationPauses: { list: () => automationPauses().map((kind) => ({ kind, reason: "", since: 0, until: null })) },
      clock,
      log: silentLog,
    });
    const actions = async (options: { dryRun?: boolean } = {}) => {
      const { orphans } = await sweep.sweep({ dryRun: false, ...options }, signal);
      return Object.fromEntries(orphans.map(({ hostId, machineId, action }) => [`${hostId} ${machineId}`, action]));
    };
    return { sweep, actions };
  }

  async function make({ hasData }: { hasData: boolean }, host: TestMachines = machines, id: string = randomUUID()) {
    await host.provider.create(testMachineSpec({ id, installationId: "i" }), signal);
    const enrollment = { installationId: "i", controllers: [], caFingerprint: "", token: "" };
    if (hasData) await host.provider.start(id, enrollment, signal);
    return id;
  }

  it("are deleted immediately without data, after seven days with data, not while paused", async () => {
    let pauses = ["restored"];
    const { sweep, actions } = sweeping(new Map([["local", machines.provider]]), () => pauses);
    const owned = await make({ hasData: true });
    const unit = testStore.begin();
    unit.create(machineKind, runningMachine(owned, { hostId: "local" }));
    await testStore.collections.machines.untilRevision(await unit.commit(), 60_000);
    const [full, empty] = [await make({ hasData: true }), await make({ hasData: false })];

    expect(await actions()).toEqual({ [`local ${full}`]: "kept", [`local ${empty}`]: "kept" });
    pauses = [];
    expect(await actions({ dryRun: true })).toEqual({ [`local ${full}`]: "stopped", [`local ${empty}`]: "destroyed" });
    const [first, second] = [empty, full].sort();
    const page = await sweep.sweep({ dryRun: true, page: { after: undefined, limit: 1 } }, signal);
    expect(page).toMatchObject({ orphans: [{ machineId: first }], next: expect.any(String) });
    const rest = await sweep.sweep({ dryRun: true, page: { after: page.next, limit: 1 } }, signal);
    expect(rest).toMatchObject({ orphans: [{ machineId: second }], next: undefined });
    expect(await machines.provider.get(empty, signal)).toBeDefined();
    expect(await actions()).toEqual({ [`local ${full}`]: "stopped", [`local ${empty}`]: "destroyed" });
    expect(await machines.provider.get(empty, signal)).toBeUndefined();
    expect(await actions()).toEqual({ [`local ${full}`]: "kept" });
    aheadMs = 7 * dayMs + 1;
    expect(await actions()).toEqual({ [`local ${full}`]: "destroyed" });
    aheadMs = 0;
    expect(await actions()).toEqual({});
    expect(await machines.provider.get(owned, signal)).toMatchObject({ state: "running" });
  });

  it("with one id on two hosts have seven days each", async () => {
    const other = await startTestMachines({ loopbackBlock: "127.98" });
    try {
      const hosts = new Map([["a", machines.provider]]);
      const { actions } = sweeping(hosts);
      const id = await make({ hasData: true });
      expect(await actions()).toMatchObject({ [`a ${id}`]: "stopped" });
      await make({ hasData: true }, other, id);
      hosts.set("b", other.provider);
      aheadMs = 6 * dayMs;
      expect(await actions()).toMatchObject({ [`a ${id}`]: "kept", [`b ${id}`]: "stopped" });
      aheadMs = 7 * dayMs + 1;
      expect(await actions()).toMatchObject({ [`a ${id}`]: "destroyed", [`b ${id}`]: "kept" });
      expect(await other.provider.get(id, signal)).toBeDefined();
      aheadMs = 13 * dayMs + 60_000;
      expect(await actions()).toMatchObject({ [`b ${id}`]: "destroyed" });
    } finally {
      await other.close();
    }
  });
});
