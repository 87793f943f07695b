import { closeSync, fstatSync, readdirSync, rmSync, write } from "node:fs";
import { basename, dirname } from "node:path";
import { ensureDirectory, openDirectory, openForAppending, type FileOwner } from "./directory-handle.ts";

/** A log in numbered segments `<path>.<n>`. Numbers only grow, so positions in the log remain valid after rotation. */
export interface SegmentLog {
  /** Never blocks: bytes that the disk is too slow or too full for are dropped, and a line of the log counts them. */
  append(bytes: Buffer): void;
  /** Accepts nothing more; resolves once everything appended before is written. */
  close(): Promise<void>;
}

const maxBacklogBytes = 1 << 20;

export interface SegmentLogSettings {
  /** Base path of the segments. Its directory is created if it is missing; the parent must exist. */
  readonly path: string;
  /** Size of a segment in bytes, after which the next one begins. */
  readonly maxBytes: number;
  /** Number of retained segments. */
  readonly keep: number;
  /** User who may read the log and owns its directory; undefined for the user of this process. */
  readonly owner: number | undefined;
}

export function createSegmentLog({ path, maxBytes, keep, owner }: SegmentLogSettings): SegmentLog {
  const reader: FileOwner | undefined = owner === undefined ? undefined : { user: owner, group: owner };
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
      const writtenBytes = error === null ? written : 0;
      size += writtenBytes;
      // The disk is full. The engine's work matters more than its log.
      droppedBytes += bytes.byteLength - writtenBytes;
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
      // The disk has no space for another segment: the current one grows further instead of failing.
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
      if (backlogBytes + bytes.byteLength > maxBacklogBytes) {
        droppedBytes += bytes.byteLength;
        return;
      }
      if (droppedBytes > 0 && !writing) {
        backlog.push(Buffer.from(`${droppedBytes} bytes of log dropped: the disk was too slow or full\n`));
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

function openLogs(path: string, owner: FileOwner | undefined) {
  const parent = openDirectory(dirname(path));
  try {
    return ensureDirectory(parent, basename(path), owner);
  } finally {
    parent.close();
  }
}

/** Numbers of the existing segments, oldest first. */
export function segmentsOf(path: string): number[] {
  const prefix = `${basename(path)}.`;
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map((name) => Number(name.slice(prefix.length)))
    .sort((a, b) => a - b);
}

const newline = 0x0a;

/**
 * Emits complete lines only, so that two streams into one log do not cut each other's lines. A line longer than the
 * limit is emitted in parts.
 */
export function createLineSplitter(limitBytes: number, emit: (lines: Buffer) => void) {
  let partial: Buffer = Buffer.alloc(0);
  return {
    push(bytes: Buffer): void {
      const all = partial.byteLength === 0 ? bytes : Buffer.concat([partial, bytes]);
      const end = all.lastIndexOf(newline) + 1;
      partial = all.subarray(end);
      if (end > 0) emit(all.subarray(0, end));
      if (partial.byteLength > limitBytes) this.end();
    },
    end(): void {
      if (partial.byteLength > 0) emit(Buffer.concat([partial, Buffer.from("\n")]));
      partial = Buffer.alloc(0);
    },
  };
}
