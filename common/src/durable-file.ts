import { type FileHandle, mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { syncPath } from "./sync-path.ts";
import { hasCode } from "./system-error.ts";

/** Replaces a file as a whole; after a crash it is the old one or the new one. Resolves when it is on the disk. */
export async function writeDurably(path: string, content: string | Uint8Array, mode = 0o600): Promise<void> {
  await replace(path, content, mode, (file) => file.sync());
  await syncPath(dirname(path));
}

/** Replaces a file as a whole for whoever reads it; after a power cut it may hold anything. */
export async function writeWhole(path: string, content: string | Uint8Array, mode = 0o600): Promise<void> {
  await replace(path, content, mode, async () => undefined);
}

async function replace(
  path: string,
  content: string | Uint8Array,
  mode: number,
  settle: (file: FileHandle) => Promise<void>,
): Promise<void> {
  const draft = `${path}.new`;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const file = await open(draft, "w", mode);
  try {
    await file.writeFile(content);
    // The mode of `open` is cut by the umask and ignored for a draft that was left behind.
    await file.chmod(mode);
    await settle(file);
  } finally {
    await file.close();
  }
  await rename(draft, path);
}

/** Undefined when there is no such file. */
export async function readIfThere(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
