import { type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { type Batch, setLeaderEpoch } from "./batches.ts";

/** Kafka's defaults of `segment.bytes` and `segment.ms`. Retention deletes whole segments. */
const [maxBytes, maxMs] = [1 << 30, 604_800_000];
/** Offsets in an index are relative to the segment's first one. */
const maxOffsets = 2 ** 31 - 1;

/** Writes one partition's log as Kafka's segment files, from which Kafka builds their indexes. */
export interface SegmentWriter {
  add(batches: readonly Batch[]): Promise<void>;
  /** Ends the log, whose next record gets the offset `end`. Nothing may be added later. */
  end(range: { readonly start: number; readonly end: number }): Promise<void>;
  close(): Promise<void>;
}

export async function createSegmentWriter(directory: string, start: number): Promise<SegmentWriter> {
  await mkdir(directory, { recursive: true, mode: 0o750 });
  let file: FileHandle | undefined;
  let [base, size, since, next] = [0, 0, 0, start];

  async function begin(offset: number): Promise<FileHandle> {
    await finish();
    [base, size, since] = [offset, 0, 0];
    return (file = await open(join(directory, `${String(offset).padStart(20, "0")}.log`), "wx", 0o640));
  }

  async function finish(): Promise<void> {
    await file?.sync();
    await file?.close();
    file = undefined;
  }

  return {
    async add(batches) {
      for (const batch of batches) {
        const { bytes, baseOffset, nextOffset, maxTimestamp } = batch;
        // The restored cluster counts its leaders from the beginning.
        setLeaderEpoch(batch, 0);
        const isFull = size + bytes.length > maxBytes || nextOffset - base > maxOffsets || maxTimestamp - since > maxMs;
        const to =
          file === undefined ? await begin(Math.min(baseOffset, next)) : isFull ? await begin(baseOffset) : file;
        if (size === 0) since = maxTimestamp;
        await to.writeFile(bytes);
        size += bytes.length;
        next = nextOffset;
      }
    },
    async end({ end }) {
      // Without records at its end, a log continues at the offset in the name of its last file.
      if (file === undefined || next < end) await begin(end);
      await finish();
      await syncPath(directory);
    },
    close: finish,
  };
}
