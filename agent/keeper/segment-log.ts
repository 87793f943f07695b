import { closeSync, fstatSync, readdirSync, rmSync, write } from "node:fs";
import { basename, dirname } from "node:path";
import { ensureDirectory, openDirectory, openForAppending, type Owner } from "./kept-directory.ts";

/** A log in numbered segments `<path>.<n>`. The numbers only grow, so that a position in it outlives rotation. */
export interface SegmentLog {
  /** Never waits: what the disk cannot take in time is dropped, and a line says how much. */
  append(bytes: Buffer): void;
  /** Takes nothing more; resolves when what was appended before is written. */
  close(): Promise<void>;
}

const largestBacklogBytes = 1 << 20;

export interface SegmentLogSettings {
  /** The directory of logs is made when it is missing, the one that it is in has to be there. */
  readonly path: string;
  readonly maxBytes: number;
  readonly keep: number;
  /** User who may read it, and to whom the directory belongs; undefined when that is who runs this. */
  readonly owner: number | undefined;
}

export function createSegmentLog({ path, maxBytes, keep, owner }: SegmentLogSettings): SegmentLog {
  const reader: Owner | undefined = owner === undefined ? undefined : { user: owner, group: owner };
  const directory = openLogs(dirname(path), reader);
  const log = directory.entry(basename(path));
  let segment: number;
  let file: number;
  try {
    segment = segmentsOf(log).at(-1) ?? 1;
    file = open(segment);
  } catch (error) {
    directory.close();
    throw error;
  }
  let size = fstatSync(file).size;
  let backlog: Buffer[] = [];
  let backlogBytes = 0;
  let droppedBytes = 0;
  let writing = false;
  let closing = false;
  const closed = Promise.withResolvers<void>();

  function flush(): void {
    if (writing) return;
    if (backlog.length === 0) {
      if (closing) end();
      return;
    }
    if (size >= maxBytes) rotate();
    const bytes = Buffer.concat(backlog);
    backlog = [];
    backlogBytes = 0;
    writing = true;
    write(file, bytes, (error, written) => {
      writing = false;
      const taken = error === null ? written : 0;
      size += taken;
      // A full disk: the engine's own work matters more than its words.
      droppedBytes += bytes.byteLength - taken;
      flush();
    });
  }

  function end(): void {
    closeSync(file);
    directory.close();
    closed.resolve();
  }

  function open(number: number): number {
    return openForAppending(`${log}.${number}`, 0o640, reader);
  }

  function rotate(): void {
    const before = file;
    try {
      file = open(segment + 1);
    } catch {
      // No room for another one, and no reason to end all that runs: this one goes on.
      return;
    }
    closeSync(before);
    segment += 1;
    size = 0;
    for (const old of segmentsOf(log)) if (old <= segment - keep) rmSync(`${log}.${old}`, { force: true });
  }

  return {
    append(bytes) {
      if (closing) return;
      if (backlogBytes + bytes.byteLength > largestBacklogBytes) {
        droppedBytes += bytes.byteLength;
        return;
      }
      if (droppedBytes > 0 && !writing) {
        backlog.push(Buffer.from(`${droppedBytes} bytes of log dropped: the disk did not take them\n`));
        droppedBytes = 0;
      }
      backlog.push(bytes);
      backlogBytes += bytes.byteLength;
      flush();
    },
    close() {
      if (!closing) {
        closing = true;
        flush();
      }
      return closed.promise;
    },
  };
}

function openLogs(path: string, owner: Owner | undefined) {
  const parent = openDirectory(dirname(path));
  try {
    return ensureDirectory(parent, basename(path), owner);
  } finally {
    parent.close();
  }
}

/** Numbers of the segments that are there, the oldest first. */
export function segmentsOf(path: string): number[] {
  const prefix = `${basename(path)}.`;
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map((name) => Number(name.slice(prefix.length)))
    .sort((a, b) => a - b);
}
