import { expect, it } from "vitest";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { excludedFeatures } from "../system/restore-walk/walk-step.ts";
import { type WalkEnd, walkEnds, walkUnderTest } from "../system/restore-walk/restore-walk.ts";

const steps = 45;

/** A walk of a PostgreSQL, and the fault that its first run found. */
interface SeededWalk {
  readonly seed: number;
  readonly steps: number;
  readonly moments: number;
  readonly ends: readonly WalkEnd[];
  readonly found: string;
}

// Steps follow from the seed; the numbers of steps reach beyond the fault.
const walks: readonly SeededWalk[] = [
  { seed: 41, steps, moments: 5, ends: walkEnds, found: "nothing" },
  { seed: 31, steps, moments: 5, ends: walkEnds, found: "a replica whose connection to its primary closed too early" },
  { seed: 104, steps: 66, moments: 1, ends: ["id"], found: "a switchover after which the replica did not stream" },
  { seed: 107, steps: 112, moments: 1, ends: ["id"], found: "a machine that ended five times and stayed in Error" },
  { seed: 108, steps: 26, moments: 1, ends: ["id"], found: "a switchover whose new primary had no replica" },
];
const upgradeTo = hasEngine("postgresql", "18") ? { upgradeTo: "18" } : {};

it.each(walks)(
  "seed $seed: moments, id, fork, drill and the store alone restore everything of a random life ($found)",
  async (seeded) => {
    const isLong = seeded.ends.length > 1;
    const walk = await walkUnderTest({ ...seeded, ...(isLong ? {} : upgradeTo), without: excludedFeatures });
    expect(walk.steps).toBe(seeded.steps);
    expect(walk.rows).toBeGreaterThan(isLong ? 500 : 50);
    expect(walk.objects).toBeGreaterThan(isLong ? 5 : 2);
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
