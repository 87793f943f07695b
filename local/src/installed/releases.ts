import { createHash, randomUUID } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readText } from "../files.ts";
import type { InstalledPaths } from "./installed-paths.ts";

type ReleasePaths = Pick<InstalledPaths, "releases" | "current">;

/** Entries of a checkout that are no code: packages and data are created again. */
const excluded = new Set(["node_modules", ".git", ".holdfast", "dist", "coverage"]);

/** Id of the code in a checkout: its version and a digest of its files, such as `0.1.0-3f9c2a1b7d04`. */
export function releaseIdOf(checkout: string): string {
  const digest = createHash("sha256");
  for (const path of filesBelow(checkout)) {
    const content = readFileSync(join(checkout, path));
    digest.update(`${path}\0${content.length}\0`).update(content);
  }
  const { version } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as { version: string };
  return `${version}-${digest.digest("hex").slice(0, 12)}`;
}

/**
 * Adds the code of a checkout as a release, which appears complete or not at all. `prepare` installs its packages.
 * Returns its id.
 */
export async function addRelease(
  { releases }: ReleasePaths,
  checkout: string,
  prepare: (directory: string) => Promise<void>,
): Promise<string> {
  const id = releaseIdOf(checkout);
  const directory = join(releases, id);
  if (existsSync(directory)) return id;
  mkdirSync(releases, { recursive: true, mode: 0o755 });
  for (const name of readdirSync(releases)) if (name.startsWith(".")) rmSync(join(releases, name), { recursive: true });
  const partial = join(releases, `.${randomUUID()}`);
  for (const path of filesBelow(checkout)) {
    mkdirSync(dirname(join(partial, path)), { recursive: true, mode: 0o755 });
    cpSync(join(checkout, path), join(partial, path));
  }
  await prepare(partial);
  renameSync(partial, directory);
  return id;
}

/** Id of the release that starts next; undefined if none is installed. */
export function currentRelease({ current }: ReleasePaths): string | undefined {
  try {
    return basename(readlinkSync(current));
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** Has the release start next. */
export function useRelease({ releases, current }: ReleasePaths, id: string): void {
  replaceLink(current, join(releases, id));
}

/** Creates a link, or has it refer to another path, atomically. */
export function replaceLink(link: string, target: string): void {
  const partial = `${link}.${randomUUID()}`;
  symlinkSync(target, partial);
  renameSync(partial, link);
}

/** Removes all releases but the retained ones and those that a process has mounted, such as a machine. */
export function removeOldReleases({ releases }: ReleasePaths, retained: readonly string[]): string[] {
  const mounts = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => mountsOf(pid))
    .join("\n");
  const unused = readdirSync(releases).filter(
    (id) => !retained.includes(id) && !mounts.includes(`/${basename(releases)}/${id}`),
  );
  for (const id of unused) rmSync(join(releases, id), { recursive: true, force: true });
  return unused;
}

/** Mounts of a process, in whose machine the code is a mount; empty for an ended process. */
function mountsOf(pid: string): string {
  try {
    return readText(`/proc/${pid}/mountinfo`) ?? "";
  } catch (error) {
    // A process that ends while it is read.
    if (hasCode(error, "ESRCH") || hasCode(error, "EINVAL") || hasCode(error, "EACCES")) return "";
    throw error;
  }
}

/** Paths of the files of a directory, sorted. */
function filesBelow(directory: string, folder = ""): string[] {
  return readdirSync(join(directory, folder), { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      if (excluded.has(entry.name)) return [];
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return filesBelow(directory, path);
      return entry.isFile() ? [path] : [];
    });
}
