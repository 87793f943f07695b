import { chownSync, closeSync, mkdirSync, openSync, readdirSync, rmSync, statSync, write } from "node:fs";
import { basename, dirname } from "node:path";

/** A log in numbered segments `<path>.<n>`. The numbers only grow, so that a position in it outlives rotation. */
export interface SegmentLog {
  /** Never waits: what the disk cannot take in time is dropped, and a line says how much. */
  append(bytes: Buffer): void;
  /** Takes nothing more; resolves when what was appended before is written. */
  close(): Promise<void>;
}

const largestBacklogBytes = 1 << 20;

export interface SegmentLogSettings {
  readonly path: string;
  readonly maxBytes: number;
  readonly keep: number;
  /** User who may read it; undefined when that is who runs this. */
  readonly owner: number | undefined;
}

export function createSegmentLog({ path, maxBytes, keep, owner }: SegmentLogSettings): SegmentLog {
  mkdirSync(dirname(path), { recursive: true });
  give(dirname(path));
  let segment = segmentsOf(path).at(-1) ?? 1;
  let file = open(segment);
  let size = statSync(`${path}.${segment}`).size;
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
      size += written ?? 0;
      // A full disk: the engine's own work matters more than its words.
      if (error !== null) droppedBytes += bytes.byteLength;
      flush();
    });
  }

  function end(): void {
    closeSync(file);
    closed.resolve();
  }

  function open(number: number): number {
    const opened = openSync(`${path}.${number}`, "a", 0o640);
    give(`${path}.${number}`);
    return opened;
  }

  function give(made: string): void {
    if (owner !== undefined) chownSync(made, owner, owner);
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
    for (const old of segmentsOf(path)) if (old <= segment - keep) rmSync(`${path}.${old}`, { force: true });
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

/** Numbers of the segments that are there, the oldest first. */
export function segmentsOf(path: string): number[] {
  const prefix = `${basename(path)}.`;
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map((name) => Number(name.slice(prefix.length)))
    .sort((a, b) => a - b);
}
