import { randomUUID } from "node:crypto";
import { chownSync, closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { hasCode } from "@holdfast/common/system-error.ts";

/** Replaces a file atomically, with its final mode and owner from the start. */
export function replaceFileSync(path: string, content: string, mode: number, owner?: number): void {
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

/** Text of the file; undefined if it does not exist. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** Parsed JSON of the file; undefined if it does not exist. */
export function readJson<T>(path: string): T | undefined {
  const text = readText(path);
  return text === undefined ? undefined : (JSON.parse(text) as T);
}

/** Text of the file; at the first call `create` returns its content. */
export function readOrCreateText(path: string, mode: number, create: () => string): string {
  const existing = readText(path);
  if (existing !== undefined) return existing;
  const created = create();
  replaceFileSync(path, created, mode);
  return created;
}

/** Parsed JSON of the file; at the first call `create` returns its content. */
export function readOrCreate<T>(path: string, mode: number, create: () => T): T {
  return JSON.parse(readOrCreateText(path, mode, () => `${JSON.stringify(create(), null, 2)}\n`)) as T;
}
