import { spawn } from "node:child_process";
import { once } from "node:events";
import { type FileHandle, mkdir, open, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";

/**
 * Locks between controllers of one host that share a directory. Each is a kernel lock on an open file (flock(2)), which
 * ends with its process, so no lock is ever stale. Only users who can open files below the directory can take one. Node
 * has no call for it: `flock` of util-linux locks a descriptor that this process opened, and exits.
 */
export interface DirectoryLock {
  /** Runs the function under the lock; waits until the lock is free. */
  withLock<T>(name: string, signal: AbortSignal, run: () => Promise<T>): Promise<T>;
  /** Runs the function under the lock if it is free; undefined otherwise. */
  tryWithLock<T>(name: string, run: () => Promise<T>): Promise<T | undefined>;
}

/** Exit status of `flock --nonblock` for a locked file. */
const lockedExitCode = 1;

export function createDirectoryLock(directory: string): DirectoryLock {
  const locks = join(directory, "locks");

  async function take(path: string, options: readonly string[], signal?: AbortSignal): Promise<FileHandle | undefined> {
    await mkdir(locks, { recursive: true, mode: 0o700 });
    for (;;) {
      const file = await open(path, "w", 0o600);
      try {
        if (!(await lockFile(file, options, signal))) {
          await file.close();
          return undefined;
        }
        // The previous owner removes the file before it unlocks, so the lock counts only if its file is still at the
        // path.
        if (await isFileAt(file, path)) return file;
      } catch (error) {
        await file.close();
        throw error;
      }
      await file.close();
    }
  }

  async function runLocked<T>(file: FileHandle, path: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } finally {
      // Removed while it is locked, so that it is certainly this file.
      await rm(path, { force: true });
      await file.close();
    }
  }

  const pathOf = (name: string) => join(locks, encodeURIComponent(name));

  return {
    async withLock(name, signal, run) {
      signal.throwIfAborted();
      const file = await take(pathOf(name), [], signal);
      if (file === undefined) throw new Error(`flock stopped waiting for the lock of ${name}`);
      return runLocked(file, pathOf(name), run);
    },
    async tryWithLock(name, run) {
      const file = await take(pathOf(name), ["--nonblock"]);
      return file && runLocked(file, pathOf(name), run);
    },
  };
}

/** False if the file is locked and the options do not wait. Rejects with the signal's reason. */
async function lockFile(file: FileHandle, options: readonly string[], signal?: AbortSignal): Promise<boolean> {
  const child = spawn("flock", [...options, "3"], {
    stdio: ["ignore", "ignore", "ignore", file.fd],
    ...(signal && { signal }),
  });
  try {
    const [code] = (await once(child, "close")) as [number | null];
    signal?.throwIfAborted();
    if (code !== 0 && code !== lockedExitCode) throw new Error(`flock ended with ${code}`);
    return code === 0;
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

async function isFileAt(file: FileHandle, path: string): Promise<boolean> {
  try {
    const [locked, current] = await Promise.all([file.stat(), stat(path)]);
    return locked.ino === current.ino && locked.dev === current.dev;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}
