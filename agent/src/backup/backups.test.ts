import { mkdtempSync, rmSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "@holdfast/common/log.ts";
import { afterEach, describe, expect, test, vi } from "vitest";
import { createBackups } from "./backups.ts";
import type { Report } from "./job.ts";
import type { JobComponent } from "./job-component.ts";

const directory = mkdtempSync(join(tmpdir(), "holdfast-backups-"));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Backups of an agent that finds one of an earlier agent on disk, still running. */
async function backupsOf(outcome: Report | undefined) {
  await mkdir(join(directory, "instance"), { recursive: true });
  const report: Report = { state: "running", backupId: "b-1", attempt: 1 };
  // oxlint-disable-next-line holdfast/names -- a key on disk
  const stored = { id: "b-1", attempt: 1, kind: "backup", told: { report, sinceMs: 0 } };
  await writeFile(join(directory, "instance", "backup.json"), JSON.stringify(stored));
  const component: JobComponent = {
    isEmpty: false,
    start: async () => undefined,
    stop: async () => undefined,
    send: () => undefined,
    outcome: async () => outcome,
    ended: () => new Promise(() => undefined),
    started: () => new Promise(() => undefined),
    follow: async () => undefined,
  };
  const onChange = vi.fn();
  const backups = createBackups({ component, stateDir: directory, now: () => 1_000, log: silentLog, onChange });
  await backups.load();
  return { backups, onChange };
}

describe("backups of a machine with a full disk", () => {
  test("report the outcome of a backup that is in progress", async () => {
    const { backups, onChange } = await backupsOf(undefined);
    await rm(join(directory, "instance"), { recursive: true });
    await writeFile(join(directory, "instance"), "");
    backups.recordReport({ state: "stored" });
    await vi.waitFor(() => expect(onChange).toHaveBeenCalledWith(true));
    expect(backups.observation()).toMatchObject({ backupId: "b-1" });
  });
});
