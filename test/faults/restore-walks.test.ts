import { expect, it } from "vitest";
import { leftOut } from "../system/restore-walk/left-out.ts";
import { walkEnds } from "../system/restore-walk/restore-walk.ts";
import { walkUnderTest } from "../system/restore-walk/walk-under-test.ts";

/** Of the second one a replica found its connection to the primary cut short. */
const seeds = [41, 31];
const steps = 45;

it.each(seeds)(
  "everything of the random life of seed %i comes back, by moments, id, fork, drill and from the store alone",
  async (seed) => {
    const walk = await walkUnderTest({ seed, steps, moments: 5, ends: walkEnds, without: leftOut });
    expect(walk.steps).toBe(steps);
    expect(walk.rows).toBeGreaterThan(500);
    expect(walk.objects).toBeGreaterThan(5);
  },
  1_200_000,
);

it("everything of the random life of a Valkey comes back, by moments, id, fork, drill, undelete and from the store alone", async () => {
  const walk = await walkUnderTest({ type: "valkey", seed: 7, steps, moments: 3, ends: walkEnds, without: leftOut });
  expect(walk.steps).toBe(steps);
  expect(walk.rows).toBeGreaterThan(500);
}, 1_200_000);
