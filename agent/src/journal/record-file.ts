import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { readIfThere } from "@holdfast/common/durable-file.ts";

/** An append-only file of JSON records. After a crash it holds every record whose append had resolved. */
export interface RecordFile<R> {
  /** What was there at the start, in order. */
  readonly records: readonly R[];
  readonly sizeBytes: number;
  /** Resolves when the record is on the disk. Appends of one moment share one flush. */
  append(record: R): Promise<void>;
  /** Replaces all that is there by what `current` gives once earlier appends are done. */
  rewrite(current: () => readonly R[]): Promise<void>;
  close(): Promise<void>;
}

/** What is there now, without touching it. */
export async function readRecords<R>(path: string): Promise<readonly R[]> {
  return decode<R>((await readIfThere(path)) ?? Buffer.alloc(0)).records;
}

/** Opens or makes the file. A tail that a crash left torn is cut. */
export async function openRecordFile<R>(path: string): Promise<RecordFile<R>> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const { records, goodBytes } = decode<R>((await readIfThere(path)) ?? Buffer.alloc(0));
  let file: FileHandle = await open(path, "a", 0o600);
  await file.truncate(goodBytes);
  await file.sync();
  await syncPath(dirname(path));
  let sizeBytes = goodBytes;
  let batch: { lines: string; done: Promise<void> } | undefined;
  let last: Promise<void> = Promise.resolve();
  /** Half a record may be behind what is good, as of a disk that was full: what came after it would be lost with it. */
  let isTorn = false;

  async function flush(): Promise<void> {
    const lines = batch?.lines ?? "";
    batch = undefined;
    if (isTorn) await file.truncate(sizeBytes);
    isTorn = true;
    await file.appendFile(lines);
    await file.datasync();
    isTorn = false;
    sizeBytes += Buffer.byteLength(lines);
  }

  async function replace(lines: string): Promise<void> {
    const draft = await open(`${path}.new`, "a", 0o600);
    try {
      await draft.truncate(0);
      await draft.writeFile(lines);
      await draft.sync();
      await rename(`${path}.new`, path);
    } catch (error) {
      await draft.close();
      await rm(`${path}.new`, { force: true });
      throw error;
    }
    const before = file;
    file = draft;
    isTorn = false;
    sizeBytes = Buffer.byteLength(lines);
    await before.close();
    await syncPath(dirname(path));
  }

  /** One after the other; a failure is its own caller's and stops no later one. */
  function queue(work: () => Promise<void>): Promise<void> {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  }

  return {
    records,
    get sizeBytes() {
      return sizeBytes;
    },
    append(record) {
      if (batch === undefined) {
        batch = { lines: "", done: Promise.resolve() };
        batch.done = queue(flush);
      }
      batch.lines += encode(record);
      return batch.done;
    },
    rewrite: (current) => queue(() => replace(current().map(encode).join(""))),
    async close() {
      await last;
      await file.close();
    },
  };
}

function encode(record: unknown): string {
  const text = JSON.stringify(record);
  return `${checksum(text)} ${text}\n`;
}

function decode<R>(bytes: Buffer): { records: R[]; goodBytes: number } {
  const records: R[] = [];
  let goodBytes = 0;
  for (;;) {
    const end = bytes.indexOf(0x0a, goodBytes);
    if (end < 0) break;
    const line = bytes.subarray(goodBytes, end).toString("utf8");
    const text = line.slice(9);
    if (line.slice(0, 8) !== checksum(text)) break;
    records.push(JSON.parse(text) as R);
    goodBytes = end + 1;
  }
  return { records, goodBytes };
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, "0");
}
