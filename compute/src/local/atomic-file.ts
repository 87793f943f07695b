import { randomUUID } from "node:crypto";
import { link, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { hasCode } from "@holdfast/common/system-error.ts";

/** Ends the names of files that are only there while they are written. */
export const temporarySuffix = ".tmp";

/** Replaces the file whole: a reader sees the old text or the new one. */
export async function writeAtomically(
  path: string,
  text: string,
  options: {
    readonly mode?: number;
    /** User and group that it is given to; this process's when absent. */
    readonly owner?: { readonly uid: number; readonly gid: number };
    /**
     * Where the new file is made, on the same file system; beside the old one when absent. Nobody else may write there who
     * can write where the file goes: what is given away is opened once and never found by its name again.
     */
    readonly scratch?: string;
  } = {},
): Promise<void> {
  const { owner, mode = 0o600 } = options;
  const temporary = temporaryIn(options.scratch ?? dirname(path));
  const file = await open(temporary, "wx", mode);
  try {
    await file.writeFile(text);
    if (owner !== undefined) await file.chown(owner.uid, owner.gid);
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}

/**
 * Makes the file with this text if there is none; false when there is. Of many at once, one wins. It is made in `scratch`,
 * where a process that is killed may leave half of it.
 */
export async function claimFile(path: string, text: string, scratch: string): Promise<boolean> {
  const temporary = temporaryIn(scratch);
  await writeFile(temporary, text, { mode: 0o600, flag: "wx" });
  try {
    await link(temporary, path);
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  } finally {
    await rm(temporary, { force: true });
  }
}

/**
 * Makes a file under a name of its own, and gives it the path once it is whole and on the disk. A program that a killed
 * process began may go on writing: it never meets the file of the next process. What it leaves is for `removeDrafts`.
 */
export async function makeWhole(path: string, make: (draft: string) => Promise<void>): Promise<void> {
  const draft = `${path}.${randomUUID()}${temporarySuffix}`;
  try {
    await make(draft);
    await syncPath(draft);
    await rename(draft, path);
    await syncPath(dirname(path));
  } finally {
    await rm(draft, { force: true });
  }
}

/** Removes what makings of the path by processes that were killed have left; none may be under way. */
export async function removeDrafts(path: string): Promise<void> {
  const directory = dirname(path);
  for (const name of await namesIn(directory)) {
    if (name.startsWith(`${basename(path)}.`) && name.endsWith(temporarySuffix))
      await rm(join(directory, name), { force: true });
  }
}

/** The file's text; undefined when there is no such file. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) return undefined;
    throw error;
  }
}

/** Names in a directory; none when there is no such directory. */
export async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

function temporaryIn(directory: string): string {
  return join(directory, `${randomUUID()}${temporarySuffix}`);
}
