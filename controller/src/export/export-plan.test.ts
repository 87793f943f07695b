import fc from "fast-check";
import { expect, test } from "vitest";
import { firstDueAt, followUp, nextDueAt } from "./export-plan.ts";
import { newRunState } from "./export-run-state.ts";
import { createExportSlots } from "./export-slots.ts";

const dayMs = 86_400_000;
const well = { consecutiveFailures: 0 };

test("ticks are an interval apart, whoever counts them and however late one is", () => {
  fc.assert(
    fc.property(
      fc.uuid(),
      fc.integer({ min: 30, max: 3_600 }),
      fc.nat(2 ** 40),
      fc.nat(10_000),
      (id, seconds, now, late) => {
        const timing = { id, intervalMs: seconds * 1_000, changedAt: 0 };
        const due = nextDueAt(timing, well, now);
        expect(due).toBeGreaterThan(now);
        expect(due - now).toBeLessThanOrEqual(timing.intervalMs);
        expect((nextDueAt(timing, well, due + late) - due) % timing.intervalMs).toBe(0);
      },
    ),
  );
});

test("what is new is looked at soon, what another controller leaves at its own time", () => {
  const timing = { id: "a", intervalMs: 3_600_000, changedAt: 1_000_000 };
  expect(firstDueAt(timing, 1_000_100)).toBeLessThanOrEqual(1_005_100);
  const later = timing.changedAt + 10 * timing.intervalMs;
  expect(firstDueAt(timing, later)).toBe(nextDueAt(timing, well, later));
});

test("what fails is asked every five minutes, and never before the destination wants it", () => {
  const timing = { id: "a", intervalMs: 30_000, changedAt: 0 };
  const spread = (failures: number) => {
    const first = nextDueAt(timing, { consecutiveFailures: failures }, dayMs);
    return nextDueAt(timing, { consecutiveFailures: failures }, first) - first;
  };
  expect([spread(9), spread(10)]).toEqual([30_000, 300_000]);
  expect(nextDueAt(timing, well, dayMs, 600_000)).toBeGreaterThanOrEqual(dayMs + 600_000);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  [{ consecutiveFailures: 9,  failingSinceMs: 0 },                             "nothing"],
  [{ consecutiveFailures: 10, failingSinceMs: 0 },                             "tellFailing"],
  [{ consecutiveFailures: 11, failingSinceMs: 0, isTold: true },               "nothing"],
  [{ consecutiveFailures: 11, failingSinceMs: 0 - 7 * dayMs, isTold: true },   "disable"],
  [{ consecutiveFailures: 0,  isTold: true },                                  "tellRecovered"],
  [{ consecutiveFailures: 0 },                                                 "nothing"],
] as const)("after %o comes %s", (state, next) => {
  expect(followUp({ ...newRunState, ...state }, 1_000)).toBe(next);
});

test("neither one organization nor all that fail take the slots of others", () => {
  const slots = createExportSlots({ total: 8, organization: 4, failingPart: 1 / 4 });
  const first = slots.take("a", 2, false);
  expect(slots.take("a", 2, false)).toBeDefined();
  expect(slots.take("a", 1, false)).toBeUndefined();
  expect(slots.take("b", 1, true)).toBeDefined();
  expect(slots.take("b", 1, true)).toBeUndefined();
  expect(slots.take("c", 1, true)).toBeDefined();
  expect(slots.take("d", 1, true)).toBeUndefined();
  expect(slots.take("d", 2, false)).toBeDefined();
  first?.();
  expect(slots.take("a", 2, false)).toBeDefined();
  expect(slots.take("e", 1, false)).toBeUndefined();
});
