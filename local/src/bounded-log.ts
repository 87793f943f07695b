import { closeSync, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import { hasCode } from "@holdfast/common/system-error.ts";

/** A log file that never grows beyond its bound; a few older ones stay beside it as `.1`, `.2`... */
export interface BoundedLog {
  readonly path: string;
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

  function rotate(): void {
    closeSync(file);
    for (let number = keep - 1; number >= 1; number -= 1) renameIfThere(`${path}.${number}`, `${path}.${number + 1}`);
    renameIfThere(path, `${path}.1`);
    file = openSync(path, "a", 0o600);
    size = 0;
  }

  return {
    path,
    write(text) {
      const bytes = Buffer.from(text);
      if (size > 0 && size + bytes.length > maxBytes) rotate();
      writeSync(file, bytes);
      size += bytes.length;
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
