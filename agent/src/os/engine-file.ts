import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

const maxBytes = 4 << 20;

/**
 * Reads a small file in a directory that the engine can write. Throws for any other kind of file, as `withEngineFile`
 * does.
 */
export function readEngineFile(path: string): Promise<string> {
  return withEngineFile(path, constants.O_RDONLY, async (file, size) => {
    if (size > maxBytes) throw new Error(`${path} is too large`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, 0);
    return buffer.toString("utf8", 0, bytesRead);
  });
}

/** Sets the mode of a file in a directory of the engine. */
export function setEngineFileMode(path: string, mode: number): Promise<void> {
  return withEngineFile(path, constants.O_RDONLY, (file) => file.chmod(mode));
}

/** Creates an empty file in a directory of the engine and syncs it; an existing file does not change. */
export function createEngineFile(path: string): Promise<void> {
  return withEngineFile(path, constants.O_WRONLY | constants.O_CREAT, (file) => file.sync());
}

/**
 * Opens a file in a directory that the engine's user owns. A symbolic link there could make the agent read, change or
 * disclose its own files, and a pipe could block it. Throws ELOOP for a symbolic link, and an error for anything but a
 * regular file with a single link.
 */
async function withEngineFile<T>(
  path: string,
  flags: number,
  use: (file: FileHandle, size: number) => Promise<T>,
): Promise<T> {
  const file = await open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o640);
  try {
    const found = await file.stat();
    if (!found.isFile() || found.nlink !== 1) throw new Error(`${path} is not a regular file of the engine`);
    return await use(file, found.size);
  } finally {
    await file.close();
  }
}
