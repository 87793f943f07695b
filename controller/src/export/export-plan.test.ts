import fc from "fast-check";
import { expect, test } from "vitest";
import { firstDueAt, followUp, nextDueAt } from "./export-plan.ts";
import { newRunState } from "./export-run-state.ts";
import { createExportSlots } from "./export-slots.ts";

const dayMs = 86_400_000;
const well = { consecutiveFailures: 0, samples: 1 };

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

test("what is new and had nothing to send is looked at again soon, until it sent a sample or a minute is over", () => {
  const timing = { id: "a", intervalMs: 3_600_000, changedAt: dayMs };
  const nothingYet = { consecutiveFailures: 0, samples: 0 };
  expect(nextDueAt(timing, nothingYet, dayMs + 10_000)).toBeLessThanOrEqual(dayMs + 15_000);
  const usual = nextDueAt(timing, well, dayMs + 10_000);
  expect(nextDueAt(timing, { ...nothingYet, consecutiveFailures: 1 }, dayMs + 10_000)).toBe(usual);
  const later = dayMs + 60_000;
  expect(nextDueAt(timing, nothingYet, later)).toBe(nextDueAt(timing, well, later));
});

test("what fails is asked every five minutes, and never before the destination wants it", () => {
  const timing = { id: "a", intervalMs: 30_000, changedAt: 0 };
  const spread = (failures: number) => {
    const first = nextDueAt(timing, { consecutiveFailures: failures, samples: 1 }, dayMs);
    return nextDueAt(timing, { consecutiveFailures: failures, samples: 1 }, first) - first;
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
  const slots = createExportSlots();
  const takeAll = (organizationId: string, isFailing: boolean) => {
    const all = [];
    for (let one = slots.take(organizationId, 2, isFailing); one !== undefined; ) {
      all.push(one);
      one = slots.take(organizationId, 2, isFailing);
    }
    return all;
  };
  const sum = (all: readonly { readonly count: number }[]) => all.reduce((total, { count }) => total + count, 0);
  const greedy = takeAll("greedy", false);
  expect(sum(greedy)).toBe(8);
  const dead = Array.from({ length: 30 }, (_, n) => takeAll(`dead ${n}`, true));
  expect(Math.max(...dead.map(sum))).toBe(2);
  expect(sum(dead.flat())).toBe(16);
  expect(slots.take("well", 2, false)).toMatchObject({ count: 2 });
  for (const each of greedy) each.release();
  expect(slots.take("greedy", 2, false)).toMatchObject({ count: 2 });
});
