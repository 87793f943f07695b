import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

test("the bundle is the agent", () => {
  const directory = mkdtempSync(join(tmpdir(), "bundle-"));
  execFileSync(process.execPath, [join(import.meta.dirname, "bundle.ts"), directory]);
  // Far from this checkout's packages, and without its settings, it says what it misses.
  const { stderr } = spawnSync(process.execPath, [join(directory, "main.mjs")], {
    cwd: directory,
    env: {},
    encoding: "utf8",
  });
  expect(stderr).toContain("HOLDFAST_MACHINE_ID is not set");
  rmSync(directory, { recursive: true });
});
