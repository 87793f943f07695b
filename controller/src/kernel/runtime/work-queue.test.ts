import { systemClock } from "@holdfast/common/clock.ts";
import { beforeEach, expect, test, vi } from "vitest";
import { backOffMs } from "@holdfast/common/back-off.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createWorkQueue, type NextRun } from "./work-queue.ts";

// Fake timers: the tests do not depend on the load of the machine.
beforeEach(() => {
  vi.useFakeTimers();
  return () => vi.useRealTimers();
});
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

function recorded(outcomes: NextRun[] = [], workMs = 5) {
  const seen = { runs: [] as string[], most: 0, now: 0, sameAtOnce: false };
  const running = new Set<string>();
  const work = async (key: string): Promise<NextRun> => {
    if (running.has(key)) seen.sameAtOnce = true;
    running.add(key);
    seen.runs.push(key);
    seen.most = Math.max(seen.most, running.size);
    // Time: the length of a run; the test advances the clock.
    await new Promise((resolve) => setTimeout(resolve, workMs));
    running.delete(key);
    return outcomes.shift() ?? "done";
  };
  return { seen, work };
}

test("a waiting key is not queued twice, and a running one runs once more", async () => {
  const { seen, work } = recorded();
  const queue = createWorkQueue(1, systemClock.monotonicMs, work, silentLog);
  queue.add("a");
  queue.add("b");
  queue.add("b");
  queue.add("a");
  queue.add("a");
  await pass(50);
  expect(seen.runs).toEqual(["a", "b", "a"]);
  expect(seen.sameAtOnce).toBe(false);
});

test("at most `concurrency` keys run concurrently", async () => {
  const { seen, work } = recorded();
  const queue = createWorkQueue(3, systemClock.monotonicMs, work, silentLog);
  for (let i = 0; i < 20; i += 1) queue.add(String(i));
  await pass(100);
  expect(seen.runs).toHaveLength(20);
  expect(seen.most).toBe(3);
});

test("a key runs again after its delay, or sooner after a hint", async () => {
  const { seen, work } = recorded([{ afterMs: 50 }, { afterMs: 10_000 }], 0);
  const queue = createWorkQueue(1, systemClock.monotonicMs, work, silentLog);
  queue.add("a");
  await pass(20);
  expect(seen.runs).toHaveLength(1);
  await pass(60);
  expect(seen.runs).toHaveLength(2);
  queue.add("a");
  await pass(10);
  expect(seen.runs).toHaveLength(3);
  expect(queue.has("a")).toBe(false);
});

test("a hint shortens a back-off, but does not run the key immediately", async () => {
  const { seen, work } = recorded([{ afterMs: 10_000, backingOff: true }], 0);
  const queue = createWorkQueue(1, systemClock.monotonicMs, work, silentLog);
  queue.add("a");
  await pass(10);
  queue.add("a");
  await pass(100);
  expect(seen.runs).toHaveLength(1);
  await pass(600);
  expect(seen.runs).toHaveLength(2);
});

test("stop waits for running work and starts no more", async () => {
  const { seen, work } = recorded([], 50);
  const queue = createWorkQueue(1, systemClock.monotonicMs, work, silentLog);
  queue.add("a");
  queue.add("b");
  const stopped = queue.stop();
  await pass(50);
  await stopped;
  queue.add("c");
  expect(seen.runs).toEqual(["a"]);
});

test("back-off doubles up to a minute, with half of it random", () => {
  expect([1, 2, 3, 20].map((failures) => backOffMs(failures, () => 1))).toEqual([100, 200, 400, 60_000]);
  expect(backOffMs(1, () => 0)).toBe(50);
});

test("a key whose work rejects runs again, and occupies no worker until then", async () => {
  const runs: string[] = [];
  const work = async (key: string): Promise<NextRun> => {
    runs.push(key);
    if (runs.length === 1) throw new Error("planted");
    return "done";
  };
  const lines: unknown[] = [];
  const log = {
    error(...line: unknown[]) {
      lines.push(line);
    },
  };
  const queue = createWorkQueue(1, systemClock.monotonicMs, work, log);
  queue.add("a");
  queue.add("b");
  await pass(10_000);
  expect(runs).toEqual(["a", "b", "a"]);
  expect(lines).toEqual([["run of a key failed", { key: "a", error: new Error("planted") }]]);
  expect(queue.has("a")).toBe(false);
});
