import type { SpoolFile, SpoolFiles } from "../../spool-files/spool-files.ts";
import { fileFrames } from "./repository-files.ts";

/**
 * Files of a repository at one member, which are sent while the engine writes them. Bytes that were sent are removed
 * from the disk by a hole in the file, which retains its size. So the repository never takes the space of the data.
 */
export interface Spool {
  /** Frames of the data that were written since the last call; none if there are none. */
  sendData(): AsyncGenerator<Buffer>;
  /**
   * Frames of all other files, once the snapshot is complete: the engine replaces them while it runs. Those of the
   * repository itself are complete at the leader alone.
   */
  sendRest(options: { readonly isLeader: boolean }): AsyncGenerator<Buffer>;
  /** True if more bytes are on the disk than the limit. */
  isFull(): Promise<boolean>;
}

interface SpoolOptions {
  readonly files: SpoolFiles;
  /** Bytes that the files may take on the disk. */
  readonly limitBytes: number;
  readonly signal: AbortSignal;
}

/** The engine writes each of these files once, from its begin to its end, and does not read it again. */
const isData = ({ path }: SpoolFile): boolean => /(?:^|\/)__[^/]+$/.test(path);
/** Lists of the repository and of its snapshot. */
const isOfRepository = (path: string): boolean => !path.includes("/");
/** Part of the limit that may remain on the disk after it was sent. */
const retainedPart = 1 / 8;

export function createSpool({ files, limitBytes, signal }: SpoolOptions): Spool {
  const retainedBytes = limitBytes * retainedPart;
  /** Bytes sent of each file. */
  const sent = new Map<string, number>();
  /** Bytes sent and not removed yet. */
  const retained = new Map<string, number>();

  async function* send(path: string): AsyncGenerator<Buffer> {
    const from = sent.get(path) ?? 0;
    sent.set(path, from);
    let isHeader = true;
    for await (const bytes of fileFrames(files, path, from, signal)) {
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
      if (length > 0) await files.release(path, length, signal);
      retained.delete(path);
      total -= bytes;
    }
  }

  return {
    async *sendData() {
      for (const file of await files.list(signal)) {
        if (!isData(file) || (sent.has(file.path) && file.bytes === sent.get(file.path))) continue;
        yield* send(file.path);
      }
    },
    async *sendRest({ isLeader }) {
      const rest = (await files.list(signal)).filter((file) => !isData(file));
      const lists = rest.filter(({ path }) => isOfRepository(path));
      if (isLeader && !lists.some(({ path }) => /^index-\d+$/.test(path)))
        throw new Error("the leader of the cluster changed during the snapshot");
      for (const { path } of rest) if (isLeader || !isOfRepository(path)) yield* fileFrames(files, path, 0, signal);
    },
    async isFull() {
      const found = await files.list(signal);
      return found.reduce((sum, { allocated }) => sum + allocated, 0) > limitBytes;
    },
  };
}
