import { readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { mountedDirectories } from "@holdfast/image/mounted-directories.ts";

/** A controller that is about to start a machine may be between its look and the mount. */
const settlingMs = 600_000;
const going = ".going";

/**
 * Removes the machines' code of earlier states of the checkout: what no machine was started with. A machine keeps what it
 * was started with for as long as it runs. Answers the names of what is gone.
 */
export async function removeOldCode(current: string, nowMs: number): Promise<string[]> {
  const parent = dirname(current);
  const names = (await readdir(parent).catch(() => [])).filter((name) => name !== basename(current));
  if (names.length === 0) return [];
  const mounted = await mountedDirectories();
  if (mounted === undefined) return [];
  const removed: string[] = [];
  for (const name of names) {
    const path = join(parent, name);
    // The root of a mount is a path within its file system: above it there may be less than on this host.
    const suffix = `/${basename(parent)}/${name}`;
    if ([...mounted].some((root) => root.endsWith(suffix))) continue;
    if (!name.endsWith(going)) {
      if (nowMs - (await stat(path)).mtimeMs < settlingMs) continue;
      // Out of sight at once: a machine finds all of it or nothing.
      await rename(path, path + going);
    }
    await rm(name.endsWith(going) ? path : path + going, { recursive: true, force: true });
    removed.push(name);
  }
  return removed;
}
