import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { Conflict } from "../store/unit-of-work.ts";
import type { Ownership } from "./ownership.ts";
import { again, type Outcome, settled } from "./reconciler.ts";
import { createRunner, type ControlLoop } from "./runner.ts";

// Time passes when a test says so: how busy the machine is does not matter.
beforeEach(() => {
  vi.useFakeTimers();
  return () => vi.useRealTimers();
});
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

function fixture(behave: (key: string, run: number, signal: AbortSignal) => Promise<Outcome> | Outcome) {
  const world = { keys: new Set(["a"]), inputs: new Map<string, number>(), mine: true, runs: [] as string[] };
  const logged: string[] = [];
  const ending = new AbortController();
  let gained = () => {};
  let changed = (_key: string) => {};
  const ownership: Ownership = {
    owns: () => world.mine,
    begin: () => (world.mine ? { signal: ending.signal, claim: undefined, end() {} } : undefined),
    subscribe(onGain) {
      gained = onGain;
      return { close() {} };
    },
  };
  const loop: ControlLoop = {
    reconciler: {
      name: "thing",
      async reconcile(key, signal) {
        world.runs.push(key);
        return behave(key, world.runs.filter((run) => run === key).length, signal);
      },
    },
    keys: () => world.keys,
    inputs: (key) => world.inputs.get(key) ?? 0,
    subscribe(onChange) {
      changed = onChange;
      return { close() {} };
    },
  };
  const log = { ...silentLog, warn: (message: string) => logged.push(message), child: () => log };
  const runner = createRunner({
    loops: [loop],
    ownership,
    clock: systemClock,
    log,
    random: () => 0,
    resyncMs: 50,
    fullResyncMs: 400,
  });
  onTestFinished(() => runner.stop());
  return { world, runner, logged, ending, gain: () => gained(), hint: (key: string) => changed(key) };
}

test("every key is reconciled at the start, then when there is a hint", async () => {
  const { world, runner, hint } = fixture(() => settled);
  world.keys.add("b");
  runner.start();
  await pass(20);
  expect(world.runs).toEqual(["a", "b"]);
  hint("b");
  await pass(20);
  expect(world.runs).toEqual(["a", "b", "b"]);
});

test("a settled key is left alone until its inputs change or the full resync comes", async () => {
  const { world, runner } = fixture(() => settled);
  runner.start();
  await pass(200);
  expect(world.runs).toHaveLength(1);
  world.inputs.set("a", 1);
  await pass(100);
  expect(world.runs).toHaveLength(2);
  await pass(500);
  expect(world.runs).toHaveLength(3);
});

test("a key that no hint told of is found by the resync", async () => {
  const { world, runner } = fixture(() => settled);
  runner.start();
  world.keys.add("new");
  await pass(100);
  expect(world.runs).toContain("new");
});

test("an unsettled key comes again after its time", async () => {
  const { world, runner } = fixture((_key, run) => (run < 3 ? again(20, "waiting") : settled));
  runner.start();
  await pass(150);
  expect(world.runs).toHaveLength(3);
});

test("a failing key is retried with back-off and logged once", async () => {
  const { world, runner, logged } = fixture((_key, run) => {
    if (run < 3) throw new Error("no");
    return settled;
  });
  runner.start();
  await pass(40);
  expect(world.runs).toHaveLength(1);
  await pass(200);
  expect(world.runs).toHaveLength(3);
  expect(logged).toEqual(["reconcile failed"]);
});

test("a conflict is retried soon and is nothing to log", async () => {
  const { world, runner, logged } = fixture((_key, run) => {
    if (run === 1) throw new Conflict();
    return settled;
  });
  runner.start();
  await pass(50);
  expect(world.runs).toHaveLength(2);
  expect(logged).toEqual([]);
});

test("keys of others are left alone; when they become ours they are reconciled", async () => {
  const { world, runner, gain, hint } = fixture(() => settled);
  world.mine = false;
  runner.start();
  hint("a");
  await pass(80);
  expect(world.runs).toEqual([]);
  world.mine = true;
  gain();
  await pass(20);
  expect(world.runs).toEqual(["a"]);
});

test("work is aborted when the right to it ends, and that is no failure", async () => {
  const { world, runner, ending, logged } = fixture(
    (_key, _run, signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );
  runner.start();
  await pass(10);
  world.mine = false;
  ending.abort(new Error("lost"));
  await pass(50);
  expect(world.runs).toHaveLength(1);
  expect(logged).toEqual([]);
});
