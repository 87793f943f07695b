import { open, rename } from "node:fs/promises";

/** Writes a file whole or not at all, for its owner only; resolves when it is on disk. */
export async function writeDurably(file: string, content: string | Uint8Array): Promise<void> {
  const handle = await open(`${file}.new`, "w", 0o600);
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${file}.new`, file);
}
