import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createInstanceFiles } from "./instance-files.ts";

test("the applied settings are stored under the keys of earlier agents", async () => {
  const stateDir = mkdtempSync(join(tmpdir(), "instance-files-"));
  try {
    const files = createInstanceFiles({ stateDir, runDir: stateDir, dataDir: stateDir, softwareRoot: "/" });
    const applied = { restartCount: "2", lastAccepted: { work_mem: "4MB" }, rejected: {} };
    await files.saveApplied(applied);
    expect(await files.loadApplied()).toEqual(applied);
    const stored = readFileSync(join(stateDir, "instance", "applied.json"), "utf8");
    expect(JSON.parse(stored)).toEqual({ restartCount: "2", lastGood: { work_mem: "4MB" }, rejected: {} });
  } finally {
    rmSync(stateDir, { recursive: true, force: true });
  }
});
