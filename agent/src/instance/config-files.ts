import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { ConfigFile } from "../engines/engine-driver.ts";
import { readIfThere, writeDurably } from "../host/durable-file.ts";

/** Makes the directory hold exactly these files; answers the names of those that changed. Each is swapped as a whole. */
export async function syncConfigFiles(directory: string, files: readonly ConfigFile[]): Promise<string[]> {
  await mkdir(directory, { recursive: true, mode: 0o750 });
  const changed: string[] = [];
  for (const { name, content, mode } of files) {
    const path = join(directory, name);
    if ((await readIfThere(path))?.toString("utf8") === content) continue;
    await writeDurably(path, content, mode);
    changed.push(name);
  }
  for (const name of await readdir(directory)) {
    if (files.some((file) => file.name.split("/")[0] === name)) continue;
    await rm(join(directory, name), { recursive: true });
    changed.push(name);
  }
  return changed;
}
