import { readFile, realpath, stat } from "node:fs/promises";

/**
 * True if a file system is mounted on this directory, in this process's view; false if the directory does not exist.
 */
export async function isMounted(directory: string): Promise<boolean> {
  const path = await realpath(directory).catch(() => undefined);
  return path !== undefined && (await mounts()).some(({ target }) => target === escaped(path));
}

/**
 * Id of the host's file system that contains a directory: equal for all subvolumes, which share its space. Throws if
 * the directory does not exist.
 */
export async function fileSystemOf(directory: string): Promise<string> {
  const [path, { dev }, all] = await Promise.all([realpath(directory), stat(directory), mounts()]);
  return sourceOf(path, all) ?? String(dev);
}

interface Mount {
  /** Mount point with the kernel's escapes. */
  readonly target: string;
  readonly source: string;
}

async function mounts(): Promise<Mount[]> {
  return mountsIn(await readFile("/proc/self/mountinfo", "utf8"));
}

/** Mounts in order, parsed from `/proc/self/mountinfo` (proc_pid_mountinfo(5)). */
export function mountsIn(table: string): Mount[] {
  return table.split("\n").flatMap((line) => {
    const [mountFields = "", fileSystemFields = ""] = line.split(" - ");
    const [target, source] = [mountFields.split(" ")[4], fileSystemFields.split(" ")[1]];
    return target === undefined || source === undefined ? [] : [{ target, source }];
  });
}

/** The device of a path; undefined if its mount has none. */
export function sourceOf(path: string, all: readonly Mount[]): string | undefined {
  const prefix = `${escaped(path)}/`;
  const above = all.filter(({ target }) => prefix.startsWith(target === "/" ? target : `${target}/`));
  // If a directory has several mounts, the last one hides the others.
  const nearest = above.reduce<Mount | undefined>(
    (best, each) => (best === undefined || each.target.length >= best.target.length ? each : best),
    undefined,
  );
  return nearest?.source.startsWith("/dev/") ? nearest.source : undefined;
}

function escaped(path: string): string {
  return path.replaceAll(/[\\ \t\n]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);
}
