import { readFile, realpath, stat } from "node:fs/promises";

/** Is something mounted on this directory, as this process sees the host's mounts? False where there is no such directory. */
export async function isMounted(directory: string): Promise<boolean> {
  const path = await realpath(directory).catch(() => undefined);
  return path !== undefined && (await mounts()).some(({ place }) => place === escaped(path));
}

/**
 * Tells which file system of the host a directory is on: the same for all subvolumes of one, which share its space. Throws when
 * there is no such directory.
 */
export async function fileSystemOf(directory: string): Promise<string> {
  const [path, { dev }, all] = await Promise.all([realpath(directory), stat(directory), mounts()]);
  return sourceOf(path, all) ?? String(dev);
}

interface Mount {
  /** As the kernel writes it, with escapes. */
  readonly place: string;
  readonly source: string;
}

async function mounts(): Promise<Mount[]> {
  return mountsIn(await readFile("/proc/self/mountinfo", "utf8"));
}

/** Pure: what is mounted where, in order, by the text of `/proc/self/mountinfo` (proc_pid_mountinfo(5)). */
export function mountsIn(table: string): Mount[] {
  return table.split("\n").flatMap((line) => {
    const [own = "", ofFileSystem = ""] = line.split(" - ");
    const [place, source] = [own.split(" ")[4], ofFileSystem.split(" ")[1]];
    return place === undefined || source === undefined ? [] : [{ place, source }];
  });
}

/** Pure: the device that a path is on; undefined where what is mounted there has none. */
export function sourceOf(path: string, all: readonly Mount[]): string | undefined {
  const wanted = `${escaped(path)}/`;
  const above = all.filter(({ place }) => wanted.startsWith(place === "/" ? place : `${place}/`));
  // Of those on one directory the last one hides the others.
  const nearest = above.reduce<Mount | undefined>(
    (best, each) => (best === undefined || each.place.length >= best.place.length ? each : best),
    undefined,
  );
  return nearest?.source.startsWith("/dev/") ? nearest.source : undefined;
}

function escaped(path: string): string {
  return path.replaceAll(/[\\ \t\n]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);
}
