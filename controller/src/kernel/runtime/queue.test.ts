import { systemClock } from "@holdfast/common/clock.ts";
import { beforeEach, expect, test, vi } from "vitest";
import { backOffMs } from "@holdfast/common/back-off.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createQueue, type Next } from "./queue.ts";

// Time passes when a test says so: how busy the machine is does not matter.
beforeEach(() => {
  vi.useFakeTimers();
  return () => vi.useRealTimers();
});
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

function recorded(outcomes: Next[] = [], workMs = 5) {
  const seen = { runs: [] as string[], most: 0, now: 0, sameAtOnce: false };
  const running = new Set<string>();
  const work = async (key: string): Promise<Next> => {
    if (running.has(key)) seen.sameAtOnce = true;
    running.add(key);
    seen.runs.push(key);
    seen.most = Math.max(seen.most, running.size);
    await new Promise((resolve) => setTimeout(resolve, workMs));
    running.delete(key);
    return outcomes.shift() ?? "done";
  };
  return { seen, work };
}

test("a key that waits is not queued twice, and one that is worked on runs once more", async () => {
  const { seen, work } = recorded();
  const queue = createQueue(1, systemClock.monotonicMs, work, silentLog);
  queue.add("a");
  queue.add("b");
  queue.add("b");
  queue.add("a");
  queue.add("a");
  await pass(50);
  expect(seen.runs).toEqual(["a", "b", "a"]);
  expect(seen.sameAtOnce).toBe(false);
});

test("as many keys run at once as are allowed", async () => {
  const { seen, work } = recorded();
  const queue = createQueue(3, systemClock.monotonicMs, work, silentLog);
  for (let i = 0; i < 20; i += 1) queue.add(String(i));
  await pass(100);
  expect(seen.runs).toHaveLength(20);
  expect(seen.most).toBe(3);
});

test("a key comes back after its time, or sooner when there is a hint", async () => {
  const { seen, work } = recorded([{ afterMs: 50 }, { afterMs: 10_000 }], 0);
  const queue = createQueue(1, systemClock.monotonicMs, work, silentLog);
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

test("hints do not make a key that backs off run at once, nor wait for long", async () => {
  const { seen, work } = recorded([{ afterMs: 10_000, backingOff: true }], 0);
  const queue = createQueue(1, systemClock.monotonicMs, work, silentLog);
  queue.add("a");
  await pass(10);
  queue.add("a");
  await pass(100);
  expect(seen.runs).toHaveLength(1);
  await pass(600);
  expect(seen.runs).toHaveLength(2);
});

test("stop waits for the workers and starts no more", async () => {
  const { seen, work } = recorded([], 50);
  const queue = createQueue(1, systemClock.monotonicMs, work, silentLog);
  queue.add("a");
  queue.add("b");
  const stopped = queue.stop();
  await pass(50);
  await stopped;
  queue.add("c");
  expect(seen.runs).toEqual(["a"]);
});

test("waits double up to a minute, with half of each at random", () => {
  expect([1, 2, 3, 20].map((failures) => backOffMs(failures, () => 1))).toEqual([100, 200, 400, 60_000]);
  expect(backOffMs(1, () => 0)).toBe(50);
});

test("a key whose work rejects comes again, and holds no worker meanwhile", async () => {
  const runs: string[] = [];
  const work = async (key: string): Promise<Next> => {
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
  const queue = createQueue(1, systemClock.monotonicMs, work, log);
  queue.add("a");
  queue.add("b");
  await pass(10_000);
  expect(runs).toEqual(["a", "b", "a"]);
  expect(lines).toEqual([["work on a key rejected", { key: "a", error: new Error("planted") }]]);
  expect(queue.has("a")).toBe(false);
});
