import { afterAll, beforeAll, expect, it } from "vitest";
import { machineObject } from "@holdfast/testing/machines/machine-object.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { ComputeFailure, ComputePending } from "@holdfast/compute/compute-failure.ts";
import { hostKind, newHost } from "../host/host.ts";
import { createMachinePlacement } from "./machine-placement.ts";
import { machineKind } from "../machine/machine.ts";

const { signal } = new AbortController();
let store: TestStore;

beforeAll(async () => {
  store = await startTestStore();
});
afterAll(() => store?.close());

it("waits for a host that is joining, at most a minute after it was added", async () => {
  const madeAt = 1_000_000;
  let now = madeAt + 59_999;
  const placement = createMachinePlacement({
    ...store.collections,
    begin: () => store.begin(),
    provider: { find: async () => undefined },
    clock: { now: () => now, monotonicMs: () => now },
    storeMayBeBehind: () => false,
  });
  const machine = machineObject();
  const unit = store.begin();
  unit.create(
    hostKind,
    newHost("new", { zone: "local", address: "", memoryOvercommit: null, diskOvercommit: null }, madeAt),
  );
  unit.create(machineKind, machine);
  await store.collections.untilRevision(await unit.commit(), 60_000);
  const place = () => placement.place(machine.metadata.id, signal);
  await expect(place()).rejects.toThrow(
    new ComputePending("Host new is joining; the machine is placed once the host has connected."),
  );
  now += 1;
  await expect(place()).rejects.toThrow(
    new ComputeFailure("No host of zone local can take it. new: it is joining: The host has not connected yet."),
  );
});
