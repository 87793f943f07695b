import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ConfigFile } from "../engines/engine-driver.ts";
import { readIfThere, writeWhole } from "@holdfast/common/durable-file.ts";

/**
 * Makes the directory hold exactly these files; answers the names of those that changed. Each is swapped as a whole.
 * What a power cut leaves of them is compared with what is wanted before the engine starts again, so none waits for the
 * disk.
 */
export async function syncConfigFiles(directory: string, files: readonly ConfigFile[]): Promise<string[]> {
  await mkdir(directory, { recursive: true, mode: 0o750 });
  const written = await Promise.all(
    files.map(async ({ name, content, mode }) => {
      const path = join(directory, name);
      if ((await readIfThere(path))?.toString("utf8") === content) return [];
      await writeWhole(path, content, mode);
      return [name];
    }),
  );
  const changed = written.flat();
  for (const name of await readdir(directory)) {
    if (files.some((file) => file.name.split("/")[0] === name)) continue;
    await rm(join(directory, name), { recursive: true });
    changed.push(name);
  }
  return changed;
}
