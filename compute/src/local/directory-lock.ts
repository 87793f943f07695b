import { spawn } from "node:child_process";
import { once } from "node:events";
import { type FileHandle, mkdir, open, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";

/**
 * Locks between the controllers of one host that share a directory. A lock is one of the kernel's on an open file (flock), which
 * is given back when its process ends, however that ends, so no lock is ever stale; only who may open files below the directory
 * can have one. Node has no call for it: `flock` of util-linux locks a file that this process opened, and ends.
 */
export interface DirectoryLock {
  /** Runs it while nobody else holds the name; waits for that. */
  hold<T>(name: string, signal: AbortSignal, run: () => Promise<T>): Promise<T>;
  /** Runs it if nobody holds the name; undefined when somebody does. */
  tryHold<T>(name: string, run: () => Promise<T>): Promise<T | undefined>;
}

/** What `flock -n` exits with when somebody else has the lock. */
const isHeldCode = 1;

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
        // The holder before removes the file when it lets go: this lock counts only while its file is the one at the
        // path.
        if (await isFileAt(file, path)) return file;
      } catch (error) {
        await file.close();
        throw error;
      }
      await file.close();
    }
  }

  async function holding<T>(file: FileHandle, path: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } finally {
      // While it is locked, so that the file that goes is this one.
      await rm(path, { force: true });
      await file.close();
    }
  }

  const pathOf = (name: string) => join(locks, encodeURIComponent(name));

  return {
    async hold(name, signal, run) {
      signal.throwIfAborted();
      const file = await take(pathOf(name), [], signal);
      if (file === undefined) throw new Error(`flock gave up waiting for the lock of ${name}`);
      return holding(file, pathOf(name), run);
    },
    async tryHold(name, run) {
      const file = await take(pathOf(name), ["--nonblock"]);
      return file && holding(file, pathOf(name), run);
    },
  };
}

/** False when it is held elsewhere and the options say not to wait. Rejects with the signal's reason. */
async function lockFile(file: FileHandle, options: readonly string[], signal?: AbortSignal): Promise<boolean> {
  const child = spawn("flock", [...options, "3"], {
    stdio: ["ignore", "ignore", "ignore", file.fd],
    ...(signal && { signal }),
  });
  try {
    const [code] = (await once(child, "close")) as [number | null];
    signal?.throwIfAborted();
    if (code !== 0 && code !== isHeldCode) throw new Error(`flock ended with ${code}`);
    return code === 0;
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

async function isFileAt(file: FileHandle, path: string): Promise<boolean> {
  try {
    const [own, there] = await Promise.all([file.stat(), stat(path)]);
    return own.ino === there.ino && own.dev === there.dev;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}
