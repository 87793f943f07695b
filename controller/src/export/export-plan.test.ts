import fc from "fast-check";
import { expect, test } from "vitest";
import { firstDueAt, followUp, nextDueAt, standingOf } from "./export-plan.ts";
import { newRunState, type RunState } from "./export-run-state.ts";
import { createExportConcurrency, type Standing } from "./export-concurrency.ts";

const dayMs = 86_400_000;
const healthy = { consecutiveFailures: 0, samples: 1 };

test("ticks are an interval apart, on every controller and after late ticks", () => {
  fc.assert(
    fc.property(
      fc.uuid(),
      fc.integer({ min: 30, max: 3_600 }),
      fc.nat(2 ** 40),
      fc.nat(10_000),
      (id, seconds, now, late) => {
        const timing = { id, intervalMs: seconds * 1_000, changedAt: 0 };
        const due = nextDueAt(timing, healthy, now);
        expect(due).toBeGreaterThan(now);
        expect(due - now).toBeLessThanOrEqual(timing.intervalMs);
        expect((nextDueAt(timing, healthy, due + late) - due) % timing.intervalMs).toBe(0);
      },
    ),
  );
});

test("new integrations are due soon; those of another controller at their usual time", () => {
  const timing = { id: "a", intervalMs: 3_600_000, changedAt: 1_000_000 };
  expect(firstDueAt(timing, 1_000_100)).toBeLessThanOrEqual(1_005_100);
  const later = timing.changedAt + 10 * timing.intervalMs;
  expect(firstDueAt(timing, later)).toBe(nextDueAt(timing, healthy, later));
});

test("a new integration is due again soon, until it sent a sample or a minute has passed", () => {
  const timing = { id: "a", intervalMs: 3_600_000, changedAt: dayMs };
  const nothingYet = { consecutiveFailures: 0, samples: 0 };
  expect(nextDueAt(timing, nothingYet, dayMs + 10_000)).toBeLessThanOrEqual(dayMs + 15_000);
  const regular = nextDueAt(timing, healthy, dayMs + 10_000);
  expect(nextDueAt(timing, { ...nothingYet, consecutiveFailures: 1 }, dayMs + 10_000)).toBe(regular);
  const later = dayMs + 60_000;
  expect(nextDueAt(timing, nothingYet, later)).toBe(nextDueAt(timing, healthy, later));
});

test("a failing integration is due every five minutes, and not before the requested delay", () => {
  const timing = { id: "a", intervalMs: 30_000, changedAt: 0 };
  const spread = (failures: number) => {
    const first = nextDueAt(timing, { consecutiveFailures: failures, samples: 1 }, dayMs);
    return nextDueAt(timing, { consecutiveFailures: failures, samples: 1 }, first) - first;
  };
  expect([spread(9), spread(10)]).toEqual([30_000, 300_000]);
  expect(nextDueAt(timing, healthy, dayMs, 600_000)).toBeGreaterThanOrEqual(dayMs + 600_000);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  [{ consecutiveFailures: 9,  failingSinceMs: 0 },                             "nothing"],
  [{ consecutiveFailures: 10, failingSinceMs: 0 },                             "announceFailing"],
  [{ consecutiveFailures: 11, failingSinceMs: 0, isAnnounced: true },               "nothing"],
  [{ consecutiveFailures: 11, failingSinceMs: 0 - 7 * dayMs, isAnnounced: true },   "disable"],
  [{ consecutiveFailures: 0,  isAnnounced: true },                                  "announceRecovered"],
  [{ consecutiveFailures: 0 },                                                 "nothing"],
] as const)("after %o follows %s", (state, next) => {
  expect(followUp({ ...newRunState, ...state }, 1_000)).toBe(next);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  [{ lastExportMs: null },                             "new"],
  [{ lastExportMs: 999 },                              "new"],
  [{ lastExportMs: 1_000 },                            "healthy"],
  [{ lastExportMs: 1_000, consecutiveFailures: 1 },    "failing"],
  [{ lastExportMs: null,  consecutiveFailures: 1 },    "failing"],
] as const)("%o, changed at 1000, is %s", (state, standing) => {
  expect(standingOf({ ...newRunState, ...state }, { changedAt: 1_000 })).toBe(standing);
});

test("neither one organization nor new or failing destinations use the capacity of others", () => {
  const concurrency = createExportConcurrency();
  const takeAll = (organizationId: string, standing: Standing) => {
    const all = [];
    for (let one = concurrency.take(organizationId, 2, standing); one !== undefined; ) {
      all.push(one);
      one = concurrency.take(organizationId, 2, standing);
    }
    return all;
  };
  const sum = (all: readonly { readonly count: number }[]) => all.reduce((total, { count }) => total + count, 0);
  const greedy = takeAll("greedy", "healthy");
  expect(sum(greedy)).toBe(8);
  for (const [standing, max] of [
    ["failing", 16],
    ["new", 32],
  ] as const) {
    const dead = Array.from({ length: 40 }, (_, n) => takeAll(`${standing} ${n}`, standing));
    expect(Math.max(...dead.map(sum))).toBe(2);
    expect(sum(dead.flat())).toBe(max);
  }
  expect(concurrency.take("healthy", 2, "healthy")).toMatchObject({ count: 1 });
  for (const each of greedy) each.release();
  expect(concurrency.take("greedy", 2, "healthy")).toBeDefined();
});

test("a hundred hanging new destinations delay only new ones of their organization", () => {
  const pollMs = 250;
  const concurrency = createExportConcurrency();
  const made = (name: string, organizationId: string, hangs: boolean, state: Partial<RunState> = {}) => ({
    timing: { id: name, intervalMs: 30_000, changedAt: 0 },
    organizationId,
    hangs,
    state: { ...newRunState, ...state },
    dueAt: 0,
    endsAt: Number.POSITIVE_INFINITY,
    longestWaitMs: 0,
    release: () => {},
  });
  const healthyOnes = Array.from({ length: 10 }, (_, n) =>
    made(`well ${n}`, "a", false, { lastExportMs: 0, samples: 1 }),
  );
  const dead = Array.from({ length: 100 }, (_, n) => made(`dead ${n}`, "a", true));
  const [last, other] = [made("last", "a", false), made("other", "b", false)];
  const all = [...dead, ...healthyOnes, last, other];
  for (let now = 0; now < 1_200_000; now += pollMs) {
    for (const each of all) {
      if (each.endsAt > now) continue;
      const { hangs, timing, state } = each;
      const consecutiveFailures = hangs ? state.consecutiveFailures + 1 : 0;
      each.state = { ...state, consecutiveFailures, samples: hangs ? 0 : 1, lastExportMs: hangs ? null : now };
      each.dueAt = nextDueAt(timing, each.state, now);
      each.endsAt = Number.POSITIVE_INFINITY;
      each.release();
    }
    const due = all.filter((each) => each.dueAt <= now && each.endsAt === Number.POSITIVE_INFINITY);
    for (const each of due.toSorted((a, b) => a.dueAt - b.dueAt)) {
      const standing = standingOf(each.state, each.timing);
      const taken = concurrency.take(each.organizationId, 1, standing);
      if (taken === undefined) continue;
      each.release = taken.release;
      each.longestWaitMs = Math.max(each.longestWaitMs, now - each.dueAt);
      // Ten seconds the first time, and three attempts half a minute later.
      const hangMs = standing === "new" ? 10_000 : 93_000;
      each.endsAt = now + (each.hangs ? hangMs : 500);
    }
  }
  // Ten concurrent ones share four permits, for half a second each.
  expect(Math.max(...healthyOnes.map(({ longestWaitMs }) => longestWaitMs))).toBeLessThanOrEqual(1_500);
  expect(other.longestWaitMs).toBeLessThanOrEqual(pollMs);
  expect(last.longestWaitMs).toBeLessThanOrEqual(600_000);
  expect(dead.filter(({ state }) => state.consecutiveFailures === 0)).toEqual([]);
});
