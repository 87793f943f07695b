import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Conflict } from "../store/unit-of-work.ts";
import type { Ownership } from "./ownership.ts";
import { again, type ReconcileOutcome, settled } from "./reconciler.ts";
import { createRunner, type ControlLoop } from "./runner.ts";

// Fake timers: the tests do not depend on the load of the machine.
beforeEach(() => {
  vi.useFakeTimers();
  return () => vi.useRealTimers();
});
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

/** A runner of one loop, after other loops. */
function createFixture(
  behave: (key: string, run: number, signal: AbortSignal) => Promise<ReconcileOutcome> | ReconcileOutcome,
  ...before: ControlLoop[]
) {
  const fixture = { keys: new Set(["a"]), inputs: new Map<string, number>(), mine: true, runs: [] as string[] };
  const logged: string[] = [];
  const ending = new AbortController();
  const gains: (() => void)[] = [];
  let changed = (_key: string) => {};
  const ownership: Ownership = {
    owns: () => fixture.mine,
    begin: () => (fixture.mine ? { signal: ending.signal, claim: undefined, end() {} } : undefined),
    subscribe(onGain) {
      gains.push(onGain);
      return { close() {} };
    },
  };
  const loop: ControlLoop = {
    reconciler: {
      name: "thing",
      async reconcile(key, signal) {
        fixture.runs.push(key);
        return behave(key, fixture.runs.filter((run) => run === key).length, signal);
      },
    },
    keys: () => fixture.keys,
    inputs: (key) => fixture.inputs.get(key) ?? 0,
    subscribe(onChange) {
      changed = onChange;
      return { close() {} };
    },
  };
  const record = (message: string) => logged.push(message);
  const log = { ...silentLog, warn: record, error: record, child: () => log };
  const runner = createRunner({
    loops: [...before, loop],
    ownership,
    clock: systemClock,
    log,
    random: () => 0,
    resyncMs: 50,
    fullResyncMs: 400,
  });
  onTestFinished(() => runner.stop());
  return {
    fixture,
    runner,
    logged,
    ending,
    gain: () => gains.forEach((each) => each()),
    hint: (key: string) => changed(key),
  };
}

test("every key is reconciled at the start, then on hints", async () => {
  const { fixture, runner, hint } = createFixture(() => settled);
  fixture.keys.add("b");
  runner.start();
  await pass(20);
  expect(fixture.runs).toEqual(["a", "b"]);
  hint("b");
  await pass(20);
  expect(fixture.runs).toEqual(["a", "b", "b"]);
});

test("a settled key is skipped until its inputs change or the full resync", async () => {
  const { fixture, runner } = createFixture(() => settled);
  runner.start();
  await pass(200);
  expect(fixture.runs).toHaveLength(1);
  fixture.inputs.set("a", 1);
  await pass(100);
  expect(fixture.runs).toHaveLength(2);
  await pass(500);
  expect(fixture.runs).toHaveLength(3);
});

test("a key without a hint is found by the resync", async () => {
  const { fixture, runner } = createFixture(() => settled);
  runner.start();
  fixture.keys.add("new");
  await pass(100);
  expect(fixture.runs).toContain("new");
});

test("a loop whose keys cannot be listed stops no other loop, at a resync or a gain", async () => {
  const { fixture, runner, logged, gain } = createFixture(() => settled, {
    reconciler: { name: "broken", reconcile: async () => settled },
    keys: () => {
      throw new Error("planted");
    },
  });
  fixture.keys.clear();
  runner.start();
  fixture.keys.add("new");
  await pass(100);
  expect(fixture.runs).toEqual(["new"]);
  fixture.keys.add("gained");
  gain();
  await pass(1);
  expect(fixture.runs).toEqual(["new", "new", "gained"]);
  expect(new Set(logged)).toEqual(new Set(["keys not listed"]));
});

test("an unsettled key runs again after its delay", async () => {
  const { fixture, runner } = createFixture((_key, run) => (run < 3 ? again(20, "waiting") : settled));
  runner.start();
  await pass(150);
  expect(fixture.runs).toHaveLength(3);
});

test("a failing key is retried with back-off and logged once", async () => {
  const { fixture, runner, logged } = createFixture((_key, run) => {
    if (run < 3) throw new Error("no");
    return settled;
  });
  runner.start();
  await pass(40);
  expect(fixture.runs).toHaveLength(1);
  await pass(200);
  expect(fixture.runs).toHaveLength(3);
  expect(logged).toEqual(["reconcile failed"]);
});

test("a conflict is retried soon and not logged", async () => {
  const { fixture, runner, logged } = createFixture((_key, run) => {
    if (run === 1) throw new Conflict();
    return settled;
  });
  runner.start();
  await pass(50);
  expect(fixture.runs).toHaveLength(2);
  expect(logged).toEqual([]);
});

test("a key whose every attempt conflicts fails with back-off, and recovers", async () => {
  let isStale = true;
  const { fixture, runner, logged } = createFixture(() => {
    if (isStale) throw new Conflict();
    return settled;
  });
  runner.start();
  await pass(1_000);
  expect(runner.status()).toMatchObject([{ failing: 1 }]);
  expect(logged).toEqual(["reconcile failed"]);
  const { length } = fixture.runs;
  await pass(60_000);
  expect(fixture.runs.length - length).toBeLessThan(15);
  isStale = false;
  await pass(60_000);
  expect(runner.status()).toMatchObject([{ failing: 0 }]);
});

test("keys of other controllers are skipped, and reconciled once gained", async () => {
  const { fixture, runner, gain, hint } = createFixture(() => settled);
  fixture.mine = false;
  runner.start();
  hint("a");
  await pass(80);
  expect(fixture.runs).toEqual([]);
  fixture.mine = true;
  gain();
  await pass(20);
  expect(fixture.runs).toEqual(["a"]);
});

test("work is aborted when its ownership ends, which is no failure", async () => {
  const { fixture, runner, ending, logged } = createFixture(
    (_key, _run, signal) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  );
  runner.start();
  await pass(10);
  fixture.mine = false;
  ending.abort(new Error("lost"));
  await pass(50);
  expect(fixture.runs).toHaveLength(1);
  expect(logged).toEqual([]);
});

describe("the status of a reconciler", () => {
  test("has a key whose reconcile still runs after its abort, until it ends", async () => {
    const hanging = Promise.withResolvers<ReconcileOutcome>();
    const { fixture, runner, logged } = createFixture((_key, run) => (run === 1 ? hanging.promise : settled));
    onTestFinished(() => hanging.resolve(settled));
    runner.start();
    await pass(89_000);
    expect(runner.status()).toMatchObject([{ running: 1, failing: 0 }]);
    await pass(1_000);
    expect(runner.status()).toMatchObject([
      { running: 1, failing: 1, failingKeys: [{ key: "a", failures: 1, nextTryAt: undefined }] },
    ]);
    expect(logged).toEqual(["reconcile failed"]);
    await pass(600_000);
    expect(fixture.runs).toEqual(["a"]);
    hanging.resolve(again(20, "waiting"));
    await pass(20);
    expect(fixture.runs).toEqual(["a", "a"]);
    expect(runner.status()).toMatchObject([{ running: 0, failing: 0, failingKeys: [] }]);
  });

  test("has a failing key with its next attempt, until the key succeeds", async () => {
    const { runner } = createFixture((_key, run) => {
      if (run <= 4) throw new Error("no", { cause: new Error("token=abc") });
      return settled;
    });
    expect(runner.status()).toMatchObject([{ reconciler: "thing", failing: 0, lastRunAt: undefined }]);
    const began = Date.now();
    runner.start();
    await pass(160);
    const [status] = runner.status();
    expect(status).toMatchObject({ queued: 0, running: 0, failing: 1, lastFailure: { at: began + 150 } });
    expect(status?.lastRunAt).toBe(began + 150);
    expect(status?.failingKeys).toEqual([
      {
        key: "a",
        failures: 3,
        since: began,
        lastError: "Error: no: caused by Error: token=[redacted]",
        nextTryAt: began + 350,
      },
    ]);
    expect([...runner.failing()]).toEqual([["thing", 1]]);
    await pass(1_000);
    expect(runner.status()).toMatchObject([{ failing: 0, failingKeys: [], lastFailure: { at: began + 350 } }]);
  });

  test("counts keys that are due and keys that are worked on", async () => {
    const { fixture, runner } = createFixture(
      (_key, _run, signal) =>
        new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted")))),
    );
    for (let at = 0; at < 9; at += 1) fixture.keys.add(`k${at}`);
    runner.start();
    await pass(10);
    expect(runner.status()).toMatchObject([{ queued: 2, running: 8 }]);
  });

  test("has no key of another controller", async () => {
    const { fixture, runner, ending } = createFixture((key) => {
      if (fixture.runs.length > 2) ending.abort();
      throw new Error(`no ${key}`);
    });
    fixture.keys.add("b");
    runner.start();
    await pass(20);
    expect(runner.status()).toMatchObject([{ failing: 2 }]);
    // The ownership ends while one key is worked on, and before the other one is.
    await pass(40);
    fixture.mine = false;
    await pass(1_000);
    expect(runner.status()).toMatchObject([{ failing: 0, failingKeys: [] }]);
  });
});
