import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { ReleaseSchema, WorkloadSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, onTestFinished, test } from "vitest";
import type { ComponentStatus } from "../../os/keeper-client.ts";
import { createWorkloadStatus } from "../workload-status.ts";
import { createAppReconciler } from "./app-reconciler.ts";
import type { Containers } from "./containers.ts";
import { createReleaseStates } from "./release-states.ts";
import type { SlotName, Slots } from "./slots.ts";

const release = (id: string) =>
  create(ReleaseSchema, {
    id,
    imageRef: `registry.test/shop/web@sha256:${"0".repeat(64)}`,
    port: 8_080,
    startTimeoutSeconds: 60,
  });

const specOf = (...ids: string[]) =>
  create(WorkloadSpecSchema, {
    workload: {
      case: "app",
      value: { port: 8_090, releases: ids.map(release), servingReleaseId: ids.at(-1) ?? "" },
    },
    generation: 1n,
    running: true,
    // No address of a machine: each connection is refused, so a release that is started is not ready.
    address: "127.0.0.1",
  });

/** A machine whose program of the release "old" ends soon after each start, and whose pulls take longer than that. */
function machine() {
  let slots: Slots = { a: { release: release("old"), restartCount: 0n, wasReady: true }, serving: "a" };
  const runs = new Map<SlotName, ComponentStatus>();
  const listeners = new Set<(slot: SlotName) => void>();
  const unpacked: string[] = [];
  const started: string[] = [];
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const containers: Containers = {
    async unpack({ id }, signal) {
      if (id === "new") await sleep(600, undefined, { signal });
      unpacked.push(id);
      return { args: ["serve"], env: [], cwd: "/", user: { uid: 0, gid: 0 } };
    },
    async start(slot, { id }) {
      started.push(id);
      const at = { pid: 1, startedAt: Date.now(), endedAt: null, exit: null, cause: null, starts: 1 };
      runs.set(slot, { name: slot, state: "running", ...at });
      if (id !== "old") return;
      sleep(100, undefined, { signal: ended.signal }).then(
        () => {
          runs.set(slot, { name: slot, state: "empty", ...at, exit: { code: 9, signal: null }, cause: "exited" });
          for (const listener of listeners) listener(slot);
        },
        () => undefined,
      );
    },
    status: (slot) => runs.get(slot),
    isRunning: (slot) => runs.get(slot)?.state === "running",
    onEnd(listener) {
      listeners.add(listener);
      return { close: () => listeners.delete(listener) };
    },
    async stop(slot) {
      runs.delete(slot);
    },
    deleteOthers: async () => undefined,
  };
  const status = createWorkloadStatus({ now: Date.now, onChange: () => undefined });
  const reconciler = createAppReconciler({
    slotFile: {
      load: async () => slots,
      async save(next) {
        slots = next;
      },
    },
    containers,
    front: { converge: async () => undefined, sessions: async () => 0, isRunning: true, stop: async () => undefined },
    relay: { converge: async () => undefined, isRunning: true, stop: async () => undefined },
    states: createReleaseStates(() => undefined),
    ends: {
      started: async () => undefined,
      beforeReady: async () => "It ended.",
      note: async () => "It ended.",
      check: () => ({ name: "program", status: "healthy", reason: "" }),
    },
    status,
    lastLines: async () => [],
    now: Date.now,
    log: silentLog,
  });
  return { reconciler, unpacked, started };
}

test("a deployment is not interrupted by a serving release that ends again and again", async () => {
  const { reconciler, unpacked, started } = machine();
  const changed = new AbortController();
  const round = reconciler.converge(specOf("old", "new"), {
    urgent: changed.signal,
    changed: changed.signal,
  });
  await expect.poll(() => started.includes("new"), { timeout: 10_000 }).toBe(true);
  expect(unpacked.filter((id) => id === "new")).toHaveLength(1);
  expect(started.filter((id) => id === "old").length).toBeGreaterThan(1);
  changed.abort(new Error("the test ends"));
  await expect(round).rejects.toThrow("the test ends");
});
