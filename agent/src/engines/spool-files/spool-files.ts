import { constants, existsSync } from "node:fs";
import { open, readdir, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { RunProgram } from "../../os/program.ts";

/** Files that an engine writes for a backup, here or at another member. They are removed once they are sent. */
export interface SpoolFiles {
  /** All files with their sizes; none without the directory. */
  list(signal: AbortSignal): Promise<SpoolFile[]>;
  /** Bytes of a file from a position on, as far as it has been written. */
  read(path: string, from: number, signal: AbortSignal): AsyncGenerator<Buffer>;
  /** Removes the first bytes of a file from the disk by a hole; its size remains. */
  release(path: string, bytes: number, signal: AbortSignal): Promise<void>;
  /** Removes the directory. */
  remove(signal: AbortSignal): Promise<void>;
  /** Bytes that the files may take: a tenth of the disk, and half of what is free. */
  limit(signal: AbortSignal): Promise<number>;
}

export interface SpoolFile {
  /** Relative to the directory. */
  readonly path: string;
  readonly bytes: number;
  /** Bytes on the disk. */
  readonly allocated: number;
}

/** Relative paths of letters, digits and signs alone. */
const safePath = /^(?!.*\.\.)[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/;
const partBytes = 1 << 20;
const blockBytes = 512;

/** True for the relative path of a file below its directory. */
export function isSafePath(path: string): boolean {
  return safePath.test(path);
}

/** The files of a directory of this machine. The caller runs as their owner, or its programs do. */
export function localFiles(run: RunProgram, root: string): SpoolFiles {
  const pathOf = (path: string) => {
    if (!isSafePath(path)) throw new Error("the path is outside of the directory");
    return join(root, path);
  };
  return {
    async list() {
      const found = await Promise.all((await filesBelow(root)).map((path) => sizeOf(root, path)));
      return found.filter((each) => each !== undefined);
    },
    async *read(path, from) {
      const file = await open(pathOf(path), constants.O_RDONLY | constants.O_NOFOLLOW);
      try {
        for (let at = from; ; ) {
          const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(partBytes), 0, partBytes, at);
          if (bytesRead === 0) return;
          yield buffer.subarray(0, bytesRead);
          at += bytesRead;
        }
      } finally {
        await file.close();
      }
    },
    async release(path, bytes, signal) {
      await run(["fallocate", "--punch-hole", "--length", String(bytes), pathOf(path)], { signal });
    },
    async remove(signal) {
      await run(["rm", "-rf", root], { signal });
    },
    async limit() {
      const { blocks, bavail, bsize } = await statfs(dirname(root));
      return Math.floor(Math.min((blocks * bsize) / 10, (bavail * bsize) / 2));
    },
  };
}

async function filesBelow(root: string): Promise<string[]> {
  try {
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    return entries
      .filter((each) => each.isFile())
      .map((each) => join(each.parentPath, each.name).slice(root.length + 1));
  } catch (error) {
    // The engine creates the directory when it first writes to it.
    if (hasCode(error, "ENOENT") && !existsSync(root)) return [];
    throw error;
  }
}

/** Undefined for a file that the engine removed. */
async function sizeOf(root: string, path: string): Promise<SpoolFile | undefined> {
  try {
    const { size, blocks } = await stat(join(root, path));
    return { path, bytes: size, allocated: blocks * blockBytes };
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
