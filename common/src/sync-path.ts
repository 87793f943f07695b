import { open } from "node:fs/promises";

/** Resolves when a file is on the disk; of a directory the names in it. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
