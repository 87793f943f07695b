import { randomUUID } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** Runs work in a new directory below the images directory. After a kill, a sweep removes it a day later. */
export async function inWorkDirectory<T>(
  imagesDir: string,
  name: string,
  use: (path: string) => Promise<T>,
): Promise<T> {
  const path = join(imagesDir, `${name}.${randomUUID()}.making`);
  try {
    await mkdir(path, { recursive: true });
    return await use(path);
  } finally {
    await rm(path, { recursive: true, force: true });
  }
}
