import { randomUUID } from "node:crypto";
import { chownSync, closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { hasCode } from "@holdfast/common/system-error.ts";

/** Writes the whole file or leaves the old one, with its final mode and owner from its first moment. */
export function writeAtomically(path: string, content: string, mode: number, owner?: number): void {
  const partial = `${path}.${randomUUID()}`;
  const file = openSync(partial, "wx", mode);
  try {
    if (owner !== undefined) chownSync(partial, owner, owner);
    writeSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(partial, path);
}

/** The file's text, or undefined when there is none. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** The parsed file, or undefined when there is none. */
export function readJson<T>(path: string): T | undefined {
  const text = readText(path);
  return text === undefined ? undefined : (JSON.parse(text) as T);
}

/** The file as it is, or as `make` makes it on the first call. */
export function readOrMakeText(path: string, mode: number, make: () => string): string {
  const existing = readText(path);
  if (existing !== undefined) return existing;
  const made = make();
  writeAtomically(path, made, mode);
  return made;
}

/** The parsed file as it is, or as `make` makes it on the first call. */
export function readOrMake<T>(path: string, mode: number, make: () => T): T {
  return JSON.parse(readOrMakeText(path, mode, () => `${JSON.stringify(make(), null, 2)}\n`)) as T;
}
