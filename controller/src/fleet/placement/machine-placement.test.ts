import { afterAll, beforeAll, expect, it } from "vitest";
import { machineObject } from "../../../../test/support/machines/machine-object.ts";
import { startTestStore, type TestStore } from "../../../../test/support/controller/test-store.ts";
import { ComputeFailure, ComputePending } from "@holdfast/compute/compute-failure.ts";
import { hostKind, newHost } from "../host/host.ts";
import { createMachinePlacement } from "./machine-placement.ts";
import { machineKind } from "../machine/machine.ts";

const { signal } = new AbortController();
let kept: TestStore;

beforeAll(async () => {
  kept = await startTestStore();
});
afterAll(() => kept?.close());

it("waits for a host that was made known a moment ago, and not for one that is not heard of for a minute", async () => {
  const madeAt = 1_000_000;
  let now = madeAt + 59_999;
  const placement = createMachinePlacement({
    ...kept.collections,
    begin: () => kept.begin(),
    provider: { find: async () => undefined },
    clock: { now: () => now, monotonicMs: () => now },
    storeMayBeBehind: () => false,
  });
  const machine = machineObject();
  const unit = kept.begin();
  unit.create(
    hostKind,
    newHost("new", { zone: "local", address: "", memoryOvercommit: null, diskOvercommit: null }, madeAt),
  );
  unit.create(machineKind, machine);
  await kept.collections.reached(await unit.commit(), 60_000);
  const place = () => placement.place(machine.metadata.id, signal);
  await expect(place()).rejects.toThrow(new ComputePending("Host new is joining; it is placed once that is there."));
  now += 1;
  await expect(place()).rejects.toThrow(
    new ComputeFailure("No host of zone local can take it. new: it is joining: It has not been heard of yet."),
  );
});
