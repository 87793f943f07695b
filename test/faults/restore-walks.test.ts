import { expect, it } from "vitest";
import { excludedFeatures } from "../system/restore-walk/walk-step.ts";
import { walkEnds, walkUnderTest } from "../system/restore-walk/restore-walk.ts";

/** Seeds of the walks. With the second seed a replica's connection to its primary once closed too early. */
const seeds = [41, 31];
const steps = 45;

it.each(seeds)(
  "seed %i: moments, id, fork, drill and the store alone restore everything of a random life",
  async (seed) => {
    const walk = await walkUnderTest({ seed, steps, moments: 5, ends: walkEnds, without: excludedFeatures });
    expect(walk.steps).toBe(steps);
    expect(walk.rows).toBeGreaterThan(500);
    expect(walk.objects).toBeGreaterThan(5);
  },
  1_200_000,
);

it("a Valkey: moments, id, fork, drill, undelete and the store alone restore everything of a random life", async () => {
  const walk = await walkUnderTest({
    type: "valkey",
    seed: 7,
    steps,
    moments: 3,
    ends: walkEnds,
    without: excludedFeatures,
  });
  expect(walk.steps).toBe(steps);
  expect(walk.rows).toBeGreaterThan(500);
}, 1_200_000);
