import fc from "fast-check";
import { expect, test } from "vitest";
import { createKeyedCounter } from "./keyed-counter.ts";

const request = fc.record({
  owner: fc.constantFrom("a", "b", "c"),
  amount: fc.integer({ min: 1, max: 4 }),
  releases: fc.nat(30),
});

test("counts never exceed a limit, and are what the taken amounts sum up to", () => {
  fc.assert(
    fc.property(fc.array(request, { maxLength: 40 }), (requests) => {
      const counter = createKeyedCounter();
      const taken: { owner: string; amount: number; release: () => void }[] = [];
      const sum = (of: (owner: string) => boolean) =>
        taken.filter(({ owner }) => of(owner)).reduce((total, { amount }) => total + amount, 0);
      for (const { owner, amount, releases } of requests) {
        const limits = [
          { key: owner, max: 5 },
          { key: "", max: 9 },
        ];
        const before = [counter.of(owner), counter.of("")];
        const result = counter.take(limits, amount);
        if (result.exceeded === undefined) taken.push({ owner, amount, release: result.release });
        else {
          expect([counter.of(owner), counter.of("")]).toEqual(before);
          expect(counter.of(result.exceeded.key) + amount).toBeGreaterThan(result.exceeded.max);
        }
        const [released] = taken.splice(releases % 7, 1);
        released?.release();
        released?.release();
        for (const name of ["a", "b", "c"]) {
          expect(counter.of(name)).toBe(sum((each) => each === name));
          expect(counter.of(name)).toBeLessThanOrEqual(5);
        }
        expect(counter.of("")).toBe(sum(() => true));
        expect(counter.of("")).toBeLessThanOrEqual(9);
      }
      for (const { release } of taken) release();
      expect(counter.highest()).toBeUndefined();
    }),
  );
});

test("the highest count is found, the key in use for longest of several", () => {
  const counter = createKeyedCounter();
  counter.add("first", 2);
  counter.add("second", 2);
  expect(counter.highest()).toEqual({ key: "first", count: 2 });
  expect(counter.add("second")).toBe(3);
  expect(counter.highest()).toEqual({ key: "second", count: 3 });
  expect([counter.add("second", -9), counter.of("second")]).toEqual([0, 0]);
});
