import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { ReleaseSchema, WorkloadSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, test } from "vitest";
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

/** Rejects once the signal aborts. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

/** A machine that serves the release "old". The test ends programs, and says when the image of "new" is pulled. */
function machine() {
  let slots: Slots = { a: { release: release("old"), restartCount: 0n, wasReady: true }, serving: "a" };
  const runs = new Map<SlotName, ComponentStatus>();
  const listeners = new Set<(slot: SlotName) => void>();
  const pulls: string[] = [];
  const starts: string[] = [];
  const changes = new Set<() => void>();
  const image = Promise.withResolvers<void>();
  const note = (list: string[], id: string) => {
    list.push(id);
    for (const change of changes) change();
  };
  const containers: Containers = {
    async unpack({ id }, signal) {
      note(pulls, id);
      if (id === "new") await Promise.race([image.promise, aborted(signal)]);
      return { args: ["serve"], env: [], cwd: "/", user: { uid: 0, gid: 0 } };
    },
    async start(slot, { id }) {
      const at = { pid: 1, startedAt: Date.now(), endedAt: null, exit: null, cause: null, starts: 1 };
      runs.set(slot, { name: slot, state: "running", ...at });
      note(starts, id);
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
  /** Ends the program in the slot. */
  function end(slot: SlotName): void {
    const run = runs.get(slot);
    if (run === undefined) throw new Error(`No program runs in the slot ${slot}.`);
    runs.set(slot, { ...run, state: "empty", exit: { code: 9, signal: null }, cause: "exited" });
    for (const listener of listeners) listener(slot);
  }
  /** Resolves once the list has the release as often as given. */
  function times(list: readonly string[], id: string, count: number): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (list.filter((each) => each === id).length < count) return;
        changes.delete(check);
        resolve();
      };
      changes.add(check);
      check();
    });
  }
  return { reconciler, pulls, starts, image, end, times };
}

test("a serving release that ends is started again beside a deployment, which continues its pull", async () => {
  const { reconciler, pulls, starts, image, end, times } = machine();
  const changed = new AbortController();
  const round = reconciler.converge(specOf("old", "new"), {
    urgent: changed.signal,
    changed: changed.signal,
  });
  // A round that ends before the test ends it rejects with the reason.
  const during = (condition: Promise<void>) => Promise.race([round, condition]);
  await during(times(pulls, "new", 1));
  end("a");
  await during(times(starts, "old", 2));
  image.resolve();
  await during(times(starts, "new", 1));
  expect(pulls.filter((id) => id === "new")).toHaveLength(1);
  changed.abort(new Error("the test ends"));
  await expect(round).rejects.toThrow("the test ends");
});
