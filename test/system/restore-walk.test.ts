import { expect, it } from "vitest";
import { leftOut } from "./restore-walk/left-out.ts";
import { walkUnderTest } from "./restore-walk/walk-under-test.ts";

// A fixed seed of a short life; `npm run faults -- --restore-walk` tries others for longer.
const seed = 2_941;

it("brings a PostgreSQL back at a moment of a random life, with all that was acknowledged and nothing that was begun later", async () => {
  const walk = await walkUnderTest({ seed, steps: 12, moments: 1, ends: [], isShort: true, without: leftOut });
  expect(walk.rows).toBeGreaterThan(50);
  expect(walk.objects).toBeGreaterThan(4);
}, 240_000);
