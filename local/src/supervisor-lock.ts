import { randomUUID } from "node:crypto";
import { linkSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readJson } from "./files.ts";
import type { ProcessIdentity } from "./process-identity.ts";
import { identify, isRunning } from "./process-identity.ts";

/** The process that runs this installation now. */
export function runningSupervisor(runDir: string): ProcessIdentity | undefined {
  const holder = readJson<ProcessIdentity>(lockOf(runDir));
  return holder !== undefined && isRunning(holder) ? holder : undefined;
}

/** Makes this process the one that runs the installation, or answers who is. A dead holder's lock counts for nothing. */
export function takeSupervisorLock(runDir: string): { taken: true; release(): void } | { taken: false; pid: number } {
  const lock = lockOf(runDir);
  const own = `${lock}.${randomUUID()}`;
  writeFileSync(own, JSON.stringify(identify(process.pid)));
  try {
    for (;;) {
      try {
        // A link appears with its content or not at all, and only where there is none.
        linkSync(own, lock);
        return { taken: true, release: () => rmSync(lock, { force: true }) };
      } catch (error) {
        if (!hasCode(error, "EEXIST")) throw error;
      }
      const holder = readJson<ProcessIdentity>(lock);
      if (holder !== undefined && isRunning(holder)) return { taken: false, pid: holder.pid };
      setAside(lock);
    }
  } finally {
    rmSync(own, { force: true });
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
  // Between the look and the rename another process may have put its own lock there: give that back.
  const moved = readJson<ProcessIdentity>(aside);
  if (moved !== undefined && isRunning(moved)) renameSync(aside, lock);
  else rmSync(aside);
}

function lockOf(runDir: string): string {
  return join(runDir, "supervisor.json");
}
