import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import { hasCode } from "@holdfast/common/system-error.ts";

/** A log file of bounded size; a full file is rotated to `.1`, `.1` to `.2`, and so on. */
export interface BoundedLog {
  readonly path: string;
  /** Never throws: text that the disk does not take is dropped, and a later line has the number of dropped bytes. */
  write(text: string): void;
  close(): void;
}

export interface LogBounds {
  readonly maxBytes: number;
  readonly filesMax: number;
}

export function openBoundedLog(path: string, { maxBytes, filesMax }: LogBounds): BoundedLog {
  let file = openSync(path, "a", 0o600);
  let size = fstatSync(file).size;
  let droppedBytes = 0;

  function rotate(): void {
    // Opened before any rename: on a full disk, nothing changes.
    const next = openSync(`${path}.next`, "a", 0o600);
    closeSync(file);
    file = next;
    size = 0;
    for (let number = filesMax - 1; number >= 1; number -= 1)
      renameIfThere(`${path}.${number}`, `${path}.${number + 1}`);
    renameIfThere(path, `${path}.1`);
    renameSync(`${path}.next`, path);
  }

  /** Number of bytes written. */
  function append(bytes: Buffer): number {
    try {
      if (size > 0 && size + bytes.length > maxBytes) rotate();
      const written = writeSync(file, bytes);
      size += written;
      return written;
    } catch {
      // Full disk: a process must not end because of its log.
      return 0;
    }
  }

  return {
    path,
    write(text) {
      const gap = droppedBytes === 0 ? "" : `\n${droppedBytes} bytes of log dropped: the disk was too slow or full\n`;
      const bytes = Buffer.from(gap + text);
      const written = append(bytes);
      if (written >= gap.length) droppedBytes = bytes.length - written;
      else droppedBytes += Buffer.byteLength(text);
    },
    close: () => closeSync(file),
  };
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
  }
}
