import { readdir, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import { fileFrames } from "./repository-files.ts";

/**
 * Files of a repository that are sent while the engine writes them. Bytes that were sent are removed from the disk by a
 * hole in the file, which retains its size, so that the repository never takes the space of the data.
 */
export interface Spool {
  /** Frames of the data that were written since the last call; none if there are none. */
  sendData(): AsyncGenerator<Buffer>;
  /** Frames of all other files, once the snapshot is complete: the engine replaces them while it runs. */
  sendRest(): AsyncGenerator<Buffer>;
  /** Bytes on the disk. */
  size(): Promise<number>;
}

interface SpoolOptions {
  readonly root: string;
  /** Bytes that may remain on the disk after they were sent. */
  readonly retainedBytes: number;
  readonly signal: AbortSignal;
}

/** The engine writes each of these files once, from its begin to its end, and does not read it again. */
const isData = (path: string): boolean => /(?:^|\/)__[^/]+$/.test(path);

export function createSpool({ run }: Pick<EngineDeps, "run">, { root, retainedBytes, signal }: SpoolOptions): Spool {
  /** Bytes sent of each file. */
  const sent = new Map<string, number>();
  /** Bytes sent and not removed yet. */
  const retained = new Map<string, number>();

  async function paths(): Promise<string[]> {
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    return entries
      .filter((each) => each.isFile())
      .map((each) => join(each.parentPath, each.name).slice(root.length + 1));
  }

  async function* send(path: string): AsyncGenerator<Buffer> {
    const from = sent.get(path) ?? 0;
    sent.set(path, from);
    let isHeader = true;
    for await (const bytes of fileFrames(root, path, from)) {
      yield bytes;
      if (!isHeader) {
        sent.set(path, (sent.get(path) ?? 0) + bytes.length);
        retained.set(path, (retained.get(path) ?? 0) + bytes.length);
        // A large file grows for as long as it is read.
        await release();
      }
      isHeader = !isHeader;
    }
  }

  /** Removes what was sent, the files with the most bytes first. */
  async function release(): Promise<void> {
    let total = retained.values().reduce((sum, bytes) => sum + bytes, 0);
    if (total <= retainedBytes) return;
    for (const [path, bytes] of [...retained].toSorted(([, a], [, b]) => b - a)) {
      if (total <= retainedBytes / 2) return;
      const length = sent.get(path) ?? 0;
      if (length > 0)
        await run(["fallocate", "--punch-hole", "--length", String(length), join(root, path)], { signal });
      retained.delete(path);
      total -= bytes;
    }
  }

  return {
    async *sendData() {
      for (const path of await paths()) {
        if (!isData(path)) continue;
        const size = await sizeOf(join(root, path));
        if (size === undefined || (sent.has(path) && size.bytes === sent.get(path))) continue;
        yield* send(path);
      }
    },
    async *sendRest() {
      for (const path of await paths()) if (!isData(path)) yield* fileFrames(root, path, 0);
    },
    async size() {
      let sum = 0;
      for (const path of await paths()) sum += (await sizeOf(join(root, path)))?.allocated ?? 0;
      return sum;
    },
  };
}

/** Undefined for a file that the engine removed. */
async function sizeOf(path: string): Promise<{ readonly bytes: number; readonly allocated: number } | undefined> {
  try {
    const { size, blocks } = await stat(path);
    return { bytes: size, allocated: blocks * 512 };
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** Bytes that a repository may take: a tenth of the disk, and half of what is free. */
export async function spoolLimit(directory: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(directory);
  return Math.floor(Math.min((blocks * bsize) / 10, (bavail * bsize) / 2));
}
