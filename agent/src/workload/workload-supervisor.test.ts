import { setImmediate as nextTurn } from "node:timers/promises";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { expect, onTestFinished, test } from "vitest";
import type { ComponentStatus } from "../os/keeper-client.ts";
import { createWorkloadStatus } from "./workload-status.ts";
import { createWorkloadSupervisor, restartReason, WorkloadEnded } from "./workload-supervisor.ts";

const spec = { generation: 1n, restartCount: 0n, running: true };

/** A supervisor whose rounds end when the test ends them. */
async function startRound() {
  const status = createWorkloadStatus({ now: Date.now, onChange: () => undefined });
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  let report: (component: ComponentStatus) => void = () => undefined;
  let isReady = true;
  const rounds: PromiseWithResolvers<void>[] = [];
  const supervisor = createWorkloadSupervisor({
    files: { loadSpec: async () => spec, saveSpec: async () => undefined },
    ownerOf: () => "s-1",
    noun: "engine",
    keeper: {
      subscribe(listener) {
        report = listener;
        return { close: () => undefined };
      },
    },
    reconciler: {
      converge() {
        const round = Promise.withResolvers<void>();
        rounds.push(round);
        return round.promise;
      },
      isReady: () => isReady,
    },
    dueAt: () => undefined,
    status,
    probeNow: () => undefined,
    clock: systemClock,
    log: silentLog,
  });
  void supervisor.run(ended.signal);
  await expect.poll(() => rounds.length).toBe(1);
  status.setState("running");
  return {
    status,
    rounds,
    /** The keeper reports that the engine ended by itself. */
    end() {
      isReady = false;
      const exit = { code: null, signal: "SIGKILL" };
      const at = { startedAt: Date.now(), endedAt: Date.now() };
      report({ name: "engine", state: "empty", pid: null, ...at, exit, cause: "exited", starts: 1 });
    },
  };
}

test("the end of a running workload is reported while a round runs", async () => {
  const { status, end } = await startRound();
  end();
  expect(status).toMatchObject({ state: "starting", reason: restartReason("engine") });
});

test("a round during which the workload ended is no failed start; the next begins without a delay", async () => {
  const { status, rounds, end } = await startRound();
  end();
  rounds[0]?.reject(new WorkloadEnded("engine"));
  await nextTurn();
  expect(status).toMatchObject({ state: "starting", reason: restartReason("engine") });
  await expect.poll(() => rounds.length).toBe(2);
});

test("a start that fails after the end of the workload is a failure", async () => {
  const { status, rounds, end } = await startRound();
  end();
  rounds[0]?.reject(new Error("The engine does not start."));
  await expect.poll(() => status.state).toBe("failed");
  expect(status.reason).toBe("The engine does not start.");
});
