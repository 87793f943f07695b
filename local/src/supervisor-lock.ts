import { randomUUID } from "node:crypto";
import { linkSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readJson } from "./files.ts";
import type { RecordedProcess } from "./recorded-process.ts";
import { identify, isRunning } from "./recorded-process.ts";

/** The process that runs this installation now. */
export function runningSupervisor(runDir: string): RecordedProcess | undefined {
  const current = readJson<RecordedProcess>(lockOf(runDir));
  return current !== undefined && isRunning(current) ? current : undefined;
}

/**
 * Makes this process the installation's supervisor, or returns the pid of the current one. The lock of an ended process
 * does not count.
 */
export function takeSupervisorLock(runDir: string): { taken: true; release(): void } | { taken: false; pid: number } {
  const lock = lockOf(runDir);
  const ownFile = `${lock}.${randomUUID()}`;
  writeFileSync(ownFile, JSON.stringify(identify(process.pid)));
  try {
    for (;;) {
      try {
        // A link appears with its content or not at all, and fails if the lock exists.
        linkSync(ownFile, lock);
        return { taken: true, release: () => rmSync(lock, { force: true }) };
      } catch (error) {
        if (!hasCode(error, "EEXIST")) throw error;
      }
      const current = readJson<RecordedProcess>(lock);
      if (current !== undefined && isRunning(current)) return { taken: false, pid: current.pid };
      setAside(lock);
    }
  } finally {
    rmSync(ownFile, { force: true });
  }
}

function setAside(lock: string): void {
  const aside = `${lock}.${randomUUID()}`;
  try {
    renameSync(lock, aside);
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
    return;
  }
  // Another process may have written its lock between check and rename: restore that lock.
  const holder = readJson<RecordedProcess>(aside);
  if (holder !== undefined && isRunning(holder)) renameSync(aside, lock);
  else rmSync(aside);
}

function lockOf(runDir: string): string {
  return join(runDir, "supervisor.json");
}
