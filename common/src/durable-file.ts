import { type FileHandle, mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { syncPath } from "./sync-path.ts";
import { hasCode } from "./system-error.ts";

/**
 * Replaces a file atomically: after a crash it has the old or the new content. Resolves when the content is on disk.
 */
export async function writeDurably(path: string, content: string | Uint8Array, mode = 0o600): Promise<void> {
  await replace(path, content, mode, (file) => file.sync());
  await syncPath(dirname(path));
}

/**
 * Replaces a file atomically for concurrent readers, without syncing it: after a power failure its content is
 * undefined.
 */
export async function writeAtomically(path: string, content: string | Uint8Array, mode = 0o600): Promise<void> {
  await replace(path, content, mode, async () => undefined);
}

async function replace(
  path: string,
  content: string | Uint8Array,
  mode: number,
  flush: (file: FileHandle) => Promise<void>,
): Promise<void> {
  const temporary = `${path}.new`;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(temporary, "w", mode);
  try {
    await file.writeFile(content);
    // `open` applies the umask to the mode, and ignores it for a file that already exists.
    await file.chmod(mode);
    await flush(file);
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}

/** The content of a file; undefined if it does not exist. */
export async function readIfExists(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
