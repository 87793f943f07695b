import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createKeyedMutex, createMutex } from "./mutex.ts";
import { createKeyedSemaphore, createSemaphore } from "./semaphore.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const refusal = (reason: string) => new Error(`refused: ${reason}`);

/** Tasks that run until they are ended by hand. */
function createTasks() {
  const started: string[] = [];
  const open = new Map<string, PromiseWithResolvers<void>>();
  return {
    started,
    open,
    work: (name: string) => async () => {
      started.push(name);
      const task = Promise.withResolvers<void>();
      open.set(name, task);
      await task.promise;
      open.delete(name);
    },
  };
}

const step = fc.oneof(
  fc.record({
    kind: fc.constant("run" as const),
    waitMs: fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined }),
  }),
  fc.record({ kind: fc.constantFrom("end" as const, "fail" as const, "abort" as const), at: fc.nat(20) }),
  fc.record({ kind: fc.constant("pass" as const), ms: fc.integer({ min: 1, max: 60 }) }),
);

test("any history of tasks respects permits, queue and order of calls, and loses no permit", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 3 }), async (steps, permits) => {
      const waitingMax = 4;
      const semaphore = createSemaphore(permits, { waitingMax, refusal });
      const tasks = createTasks();
      const aborts = new Map<string, AbortController>();
      const outcomes = new Map<string, string>();
      let calls = 0;
      for (const each of steps) {
        if (each.kind === "run") {
          const name = String(calls++).padStart(3, "0");
          const abort = new AbortController();
          aborts.set(name, abort);
          const wait = { signal: abort.signal, ...(each.waitMs !== undefined && { waitMs: each.waitMs }) };
          semaphore.run(tasks.work(name), wait).then(
            () => outcomes.set(name, "done"),
            (error: Error) => outcomes.set(name, error.message),
          );
        } else if (each.kind === "pass") await vi.advanceTimersByTimeAsync(each.ms);
        else if (each.kind === "abort") [...aborts.values()][each.at]?.abort(new Error("aborted"));
        else {
          const task = [...tasks.open.values()][each.at % Math.max(tasks.open.size, 1)];
          if (each.kind === "end") task?.resolve();
          else task?.reject(new Error("failed"));
          if (each.kind === "fail") for (const [name, open] of tasks.open) if (open === task) tasks.open.delete(name);
        }
        await nextTurn();
        const waiting = calls - outcomes.size - tasks.open.size;
        expect(tasks.open.size).toBeLessThanOrEqual(permits);
        expect(waiting).toBeLessThanOrEqual(waitingMax);
        // No permit is free while a task waits.
        if (waiting > 0) expect(tasks.open.size).toBe(permits);
      }
      expect(tasks.started).toEqual(tasks.started.toSorted());
      for (let round = 0; round < calls; round += 1) {
        for (const task of tasks.open.values()) task.resolve();
        await nextTurn();
      }
      expect(outcomes.size).toBe(calls);
      expect(vi.getTimerCount()).toBe(0);
    }),
    { numRuns: 200 },
  );
});

test("a full queue and a wait that is over refuse the task, and a signal rejects with its reason", async () => {
  const semaphore = createSemaphore(1, { waitingMax: 2, refusal });
  const tasks = createTasks();
  const abort = new AbortController();
  const first = semaphore.run(tasks.work("first"));
  const late = semaphore.run(tasks.work("late"), { waitMs: 10 });
  const aborted = semaphore.run(tasks.work("aborted"), { signal: abort.signal });
  await expect(semaphore.run(tasks.work("excess"))).rejects.toThrow("refused: queue_full");
  const lateIsRefused = expect(late).rejects.toThrow("refused: wait_over");
  await vi.advanceTimersByTimeAsync(10);
  await lateIsRefused;
  abort.abort(new Error("the caller left"));
  await expect(aborted).rejects.toThrow("the caller left");
  await expect(semaphore.run(tasks.work("left"), { signal: abort.signal })).rejects.toThrow("the caller left");
  tasks.open.get("first")?.resolve();
  await first;
  expect(tasks.started).toEqual(["first"]);
});

test("a task that runs is not affected by its signal, and leaves no listener", async () => {
  const semaphore = createSemaphore(1);
  const abort = new AbortController();
  const removed = vi.spyOn(abort.signal, "removeEventListener");
  const added = vi.spyOn(abort.signal, "addEventListener");
  const tasks = createTasks();
  const first = semaphore.run(tasks.work("first"), { signal: abort.signal });
  const second = semaphore.run(tasks.work("second"), { signal: abort.signal });
  tasks.open.get("first")?.resolve();
  await first;
  await nextTurn();
  abort.abort();
  tasks.open.get("second")?.resolve();
  await second;
  expect(removed.mock.calls.length).toBe(added.mock.calls.length);
});

test("a mutex runs one task at a time, in order, also after a failure", async () => {
  const mutex = createMutex();
  const order: string[] = [];
  const task = (name: string, fails = false) =>
    mutex(async () => {
      order.push(`${name} begins`);
      await nextTurn();
      order.push(`${name} ends`);
      if (fails) throw new Error(name);
    });
  const [first, second] = await Promise.allSettled([task("a", true), task("b")]);
  expect([first.status, second.status]).toEqual(["rejected", "fulfilled"]);
  expect(order).toEqual(["a begins", "a ends", "b begins", "b ends"]);
});

test("keys are independent of each other", async () => {
  const semaphore = createKeyedSemaphore(1, { waitingMax: 0, refusal });
  const mutex = createKeyedMutex();
  const tasks = createTasks();
  const runs = [
    semaphore.run("a", tasks.work("a1")),
    semaphore.run("b", tasks.work("b1")),
    mutex("a", tasks.work("m")),
  ];
  await expect(semaphore.run("a", tasks.work("a2"))).rejects.toThrow("refused: queue_full");
  expect(tasks.started).toEqual(["a1", "b1", "m"]);
  for (const task of tasks.open.values()) task.resolve();
  await Promise.all(runs);
});
