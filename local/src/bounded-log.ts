import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import { hasCode } from "@holdfast/common/system-error.ts";

/** A log file that never grows beyond its bound; a few older ones stay beside it as `.1`, `.2`... */
export interface BoundedLog {
  readonly path: string;
  /** Never throws: what the disk does not take is dropped, and a line says how much once it does. */
  write(text: string): void;
  close(): void;
}

export interface LogBounds {
  readonly maxBytes: number;
  readonly keep: number;
}

export function openBoundedLog(path: string, { maxBytes, keep }: LogBounds): BoundedLog {
  let file = openSync(path, "a", 0o600);
  let size = fstatSync(file).size;
  let droppedBytes = 0;

  function rotate(): void {
    // Opened before anything is renamed: when there is no room for it, nothing has changed.
    const next = openSync(`${path}.next`, "a", 0o600);
    closeSync(file);
    file = next;
    size = 0;
    for (let number = keep - 1; number >= 1; number -= 1) renameIfThere(`${path}.${number}`, `${path}.${number + 1}`);
    renameIfThere(path, `${path}.1`);
    renameSync(`${path}.next`, path);
  }

  /** Bytes that the disk took. */
  function append(bytes: Buffer): number {
    try {
      if (size > 0 && size + bytes.length > maxBytes) rotate();
      const written = writeSync(file, bytes);
      size += written;
      return written;
    } catch {
      // A full disk: nothing that runs may end because its words are not kept.
      return 0;
    }
  }

  return {
    path,
    write(text) {
      const gap = droppedBytes === 0 ? "" : `\n${droppedBytes} bytes of log dropped: the disk did not take them\n`;
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
