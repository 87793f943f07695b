import { spawn } from "node:child_process";
import { homedir, tmpdir } from "node:os";
import { join, sep } from "node:path";

/**
 * Kills all processes that name a directory, and removes the directory, when the test's process ends for any reason.
 */
export interface DirectoryGuard {
  /** Kills the processes and removes the directory now; resolves when both are done. */
  end(): Promise<void>;
}

const watchdog = join(import.meta.dirname, "watchdog.sh");

/** Throws for a directory that holds more than a test's files: the watchdog ends every process that names it. */
export function guardDirectory(directory: string): DirectoryGuard {
  const shared = [tmpdir(), homedir(), process.cwd()];
  if (shared.some((each) => each === directory || each.startsWith(directory.replace(/\/*$/, sep))))
    throw new Error(`${directory} is not a directory of a test alone`);
  const guard = spawn(watchdog, [directory], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  const ended = new Promise<void>((resolve) => guard.once("close", () => resolve()));
  guard.unref();
  return {
    async end() {
      guard.ref();
      guard.stdin.end();
      await ended;
    },
  };
}
