import { open } from "node:fs/promises";

/** Syncs a file to disk; for a directory, its entries. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
