import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Capacity, createCapacityQueue } from "./capacity-queue.ts";

const all = { key: "all", max: 4 };
const part = { key: "part", max: 2 };
const ordinary = { limits: [all] };
const limited = { limits: [all, part] };

test("a class at its limit delays no other, and each class is served in the order of its requests", async () => {
  const queue = createCapacityQueue();
  const granted: string[] = [];
  const capacities = new Map<string, Capacity>();
  const acquire = (name: string, request: Parameters<typeof queue.acquire>[0]) =>
    queue.acquire(request).then((capacity) => {
      granted.push(name);
      capacities.set(name, capacity);
    });
  for (const name of ["p1", "p2", "p3", "p4"]) acquire(name, limited).catch(() => undefined);
  for (const name of ["o1", "o2", "o3"]) acquire(name, ordinary).catch(() => undefined);
  acquire("urgent", { ...ordinary, isUrgent: true }).catch(() => undefined);
  await nextTurn();
  expect(granted).toEqual(["p1", "p2", "o1", "o2"]);
  capacities.get("o1")?.release();
  capacities.get("p1")?.release();
  await nextTurn();
  expect(granted.slice(4)).toEqual(["urgent", "p3"]);
});

test("an abandoned request gets nothing, and shrinking serves the next one", async () => {
  const queue = createCapacityQueue();
  const first = queue.tryAcquire({ limits: [all], amount: 4 });
  const abort = new AbortController();
  const abandoned = queue.acquire({ limits: [all], amount: 2 }, abort.signal);
  const second = queue.acquire({ limits: [all], amount: 3 });
  abort.abort(new Error("the caller left"));
  await expect(abandoned).rejects.toThrow("the caller left");
  first?.shrink(1);
  await second;
  expect([queue.used("all"), queue.tryAcquire(ordinary)]).toEqual([4, undefined]);
  first?.release();
  first?.release();
  expect(queue.used("all")).toBe(3);
});

const step = fc.record({
  kind: fc.constantFrom("acquire" as const, "release" as const, "abort" as const),
  isLimited: fc.boolean(),
  at: fc.nat(20),
});

test("any history stays within the limits, and serves every request that fits", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const queue = createCapacityQueue();
      const granted: { capacity: Capacity; isLimited: boolean }[] = [];
      const waiting = new Map<number, { abort: AbortController; isLimited: boolean }>();
      for (const [index, { kind, isLimited, at }] of steps.entries()) {
        if (kind === "acquire") {
          const abort = new AbortController();
          waiting.set(index, { abort, isLimited });
          queue
            .acquire(isLimited ? limited : ordinary, abort.signal)
            .then((capacity) => granted.push({ capacity, isLimited }))
            .catch(() => undefined)
            .finally(() => waiting.delete(index));
        } else if (kind === "release") granted.splice(at, 1)[0]?.capacity.release();
        else [...waiting.values()][at]?.abort.abort();
        await nextTurn();
        const ofPart = granted.filter((each) => each.isLimited).length;
        expect([queue.used("all"), queue.used("part")]).toEqual([granted.length, ofPart]);
        expect(granted.length).toBeLessThanOrEqual(4);
        expect(ofPart).toBeLessThanOrEqual(2);
        for (const each of waiting.values())
          expect(granted.length === 4 || (each.isLimited && ofPart === 2)).toBe(true);
      }
    }),
  );
});
