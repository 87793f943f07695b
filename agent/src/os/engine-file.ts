import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

const mostBytes = 4 << 20;

/** Reads a small file that lies where the engine can put anything in its place. Throws for what is none, as below. */
export function readEngineFile(path: string): Promise<string> {
  return withEngineFile(path, constants.O_RDONLY, async (file, size) => {
    if (size > mostBytes) throw new Error(`${path} is too large`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, 0);
    return buffer.toString("utf8", 0, bytesRead);
  });
}

/** Gives it this mode. */
export function setEngineFileMode(path: string, mode: number): Promise<void> {
  return withEngineFile(path, constants.O_RDONLY, (file) => file.chmod(mode));
}

/** Makes it, empty, and lasting; one that is there stays as it is. */
export function makeEngineFile(path: string): Promise<void> {
  return withEngineFile(path, constants.O_WRONLY | constants.O_CREAT, (file) => file.sync());
}

/**
 * The engine's user owns the directory: a link there would have the agent read, change or tell what is its own, and a pipe would
 * hold it up for ever. Throws ELOOP for a symbolic link, and for anything else that is no regular file with one name.
 */
async function withEngineFile<T>(
  path: string,
  flags: number,
  use: (file: FileHandle, size: number) => Promise<T>,
): Promise<T> {
  const file = await open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o640);
  try {
    const found = await file.stat();
    if (!found.isFile() || found.nlink !== 1) throw new Error(`${path} is no file of the engine's own`);
    return await use(file, found.size);
  } finally {
    await file.close();
  }
}
