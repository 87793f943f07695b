import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { faultSettings } from "./check-requested.ts";
import { runFaults } from "./run-faults.ts";

// A fixed seed, so that each run sends the same requests; `npm run faults` tries others for longer.
const seed = 20_240_607;
const kills = 42;

describe("random kills", () => {
  let platform: Platform;
  beforeAll(async () => {
    platform = await startPlatform({ environment: faultSettings });
  });
  afterAll(() => platform?.remove());

  it("leave everything as requested, and nothing else", async () => {
    const lines: string[] = [];
    const startedAt = Date.now();
    const log = (line: string) => lines.push(`${((Date.now() - startedAt) / 1_000).toFixed(1).padStart(6)} ${line}`);
    const result = await runFaults(platform, { seed, kills, log }).catch((error: unknown) => {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}\n${lines.join("\n")}`);
    });
    expect(Object.values(result.kills).reduce((sum, count) => sum + count, 0)).toBe(kills);
    expect(result.rows).toBeGreaterThan(50);
    expect(result.values).toBeGreaterThan(50);
  }, 360_000);
});
