import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import fc from "fast-check";
import { beforeEach, expect, test, vi } from "vitest";
import { createWorkQueue, type NextRun } from "./work-queue.ts";

beforeEach(() => {
  vi.useFakeTimers();
  return () => vi.useRealTimers();
});

const keys = ["a", "b", "c"];
const concurrency = 2;
const longestRunMs = 300;
/** Delay after a run that rejects. */
const fault = { afterMs: 5_000, backingOff: true };
/** Delay after a hint for a key in back-off. */
const hintMs = 500;

/** A run must begin by this time; a failure names the reason. */
interface Due {
  readonly key: string;
  /** Number of runs that had begun before. */
  readonly after: number;
  readonly until: number;
  readonly reason: string;
}

const run = fc.record({
  tookMs: fc.integer({ min: 0, max: longestRunMs }),
  next: fc.oneof(
    fc.constantFrom("done" as const, "rejects" as const),
    fc.record({ afterMs: fc.integer({ min: 0, max: 2_000 }), backingOff: fc.constant(false) }),
    fc.record({ afterMs: fc.integer({ min: 0, max: 60_000 }), backingOff: fc.constant(true) }),
  ),
});
const step = fc.oneof(
  fc.record({ hint: fc.constantFrom(...keys) }),
  fc.record({ passMs: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 3_000 })) }),
);

test("each hint and each planned run is followed by a run in time, in any order of hints, runs and timers", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(run, { maxLength: 30 }), fc.array(step, { maxLength: 60 }), async (runs, steps) => {
      vi.clearAllTimers();
      const started: { key: string; at: number }[] = [];
      const due: Due[] = [];
      const running = new Set<string>();
      const faults: string[] = [];
      const backsOffUntil = new Map<string, number>();
      const results = [...runs];
      /** Longest wait for a worker: each other key runs at most once before. */
      const waitMs = keys.length * longestRunMs;
      const plan = (key: string, afterMs: number, reason: string) =>
        due.push({ key, after: started.length, until: Date.now() + afterMs + waitMs, reason });

      async function work(key: string): Promise<NextRun> {
        if (running.has(key)) faults.push(`two concurrent runs of ${key}`);
        running.add(key);
        if (running.size > concurrency) faults.push(`${running.size} concurrent runs`);
        if (Date.now() < (backsOffUntil.get(key) ?? 0)) faults.push(`${key} runs during its back-off`);
        started.push({ key, at: Date.now() });
        const { tookMs, next } = results.shift() ?? { tookMs: 0, next: "done" };
        // Time: the length of a run; the test advances the clock.
        await new Promise((resolve) => setTimeout(resolve, tookMs));
        running.delete(key);
        const delay = next === "rejects" ? fault : next === "done" ? undefined : next;
        if (delay !== undefined) plan(key, delay.afterMs, "a run that is not done");
        if (delay?.backingOff) backsOffUntil.set(key, Date.now() + Math.min(delay.afterMs, hintMs));
        if (next === "rejects") throw new Error("planted");
        return next;
      }

      const queue = createWorkQueue(concurrency, systemClock.monotonicMs, work, silentLog);
      for (const each of steps) {
        if ("passMs" in each) await vi.advanceTimersByTimeAsync(each.passMs);
        else {
          plan(each.hint, running.has(each.hint) ? longestRunMs + hintMs : hintMs, "a hint");
          queue.add(each.hint);
        }
      }
      await vi.advanceTimersByTimeAsync(400_000);
      const missed = due.filter(
        ({ key, after, until }) => !started.slice(after).some((each) => each.key === key && each.at <= until),
      );
      expect([faults, missed]).toEqual([[], []]);
      expect([queue.size, keys.filter((key) => queue.has(key))]).toEqual([0, []]);
    }),
    { numRuns: 300 },
  );
});
