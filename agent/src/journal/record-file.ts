import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { readIfExists } from "@holdfast/common/durable-file.ts";

/**
 * An append-only file of JSON records, each line with a CRC-32. After a crash it has every record whose append had
 * resolved.
 */
export interface RecordFile<R> {
  /** Records that the file had when it was opened, in order. */
  readonly records: readonly R[];
  readonly sizeBytes: number;
  /** Resolves once the record is on disk. Concurrent appends share one flush. */
  append(record: R): Promise<void>;
  /** Replaces all records by those that `current` returns, once earlier appends are done. */
  rewrite(current: () => readonly R[]): Promise<void>;
  close(): Promise<void>;
}

/** Reads the records of a file without changing it. */
export async function readRecords<R>(path: string): Promise<readonly R[]> {
  return decode<R>((await readIfExists(path)) ?? Buffer.alloc(0)).records;
}

/** Opens or creates the file. A torn tail is truncated. */
export async function openRecordFile<R>(path: string): Promise<RecordFile<R>> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const { records, validBytes } = decode<R>((await readIfExists(path)) ?? Buffer.alloc(0));
  let file: FileHandle = await open(path, "a", 0o600);
  await file.truncate(validBytes);
  await file.sync();
  await syncPath(dirname(path));
  let sizeBytes = validBytes;
  let batch: { lines: string; done: Promise<void> } | undefined;
  let last: Promise<void> = Promise.resolve();
  /** The file may end with a partial record, such as after a full disk; it is truncated before the next append. */
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

  /** Runs writes in order. A failure affects its own caller only. */
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

function decode<R>(bytes: Buffer): { records: R[]; validBytes: number } {
  const records: R[] = [];
  let validBytes = 0;
  for (;;) {
    const end = bytes.indexOf(0x0a, validBytes);
    if (end < 0) break;
    const line = bytes.subarray(validBytes, end).toString("utf8");
    const text = line.slice(9);
    if (line.slice(0, 8) !== checksum(text)) break;
    records.push(JSON.parse(text) as R);
    validBytes = end + 1;
  }
  return { records, validBytes };
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, "0");
}
