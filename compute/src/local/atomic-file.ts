import { randomUUID } from "node:crypto";
import { link, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { hasCode } from "@holdfast/common/system-error.ts";

/** Suffix of files that exist only while they are written. */
export const temporarySuffix = ".tmp";

/** Replaces a file atomically: readers see the old text or the new one. */
export async function writeAtomically(
  path: string,
  text: string,
  options: {
    readonly mode?: number;
    /** Owner of the new file; this process's user and group if absent. */
    readonly owner?: { readonly uid: number; readonly gid: number };
    /**
     * Directory of the draft, on the same file system; the target's directory if absent. Use one that the target's
     * other writers cannot write to: the draft changes its owner by descriptor, and must not be swapped before the
     * rename.
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
 * Creates the file with this text; false if it exists. Of concurrent calls, one wins. The draft is in `scratch`, where
 * a killed process may leave part of it.
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
 * Creates a file under a draft name, and renames it once it is complete and synced. A program of a killed process may
 * continue to write its own draft, never the file of the next process. `removeDrafts` removes such drafts.
 */
export async function createAtomically(path: string, make: (draft: string) => Promise<void>): Promise<void> {
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

/** Removes drafts of the path that killed processes left; none may be in progress. */
export async function removeDrafts(path: string): Promise<void> {
  const directory = dirname(path);
  for (const name of await namesIn(directory)) {
    if (name.startsWith(`${basename(path)}.`) && name.endsWith(temporarySuffix))
      await rm(join(directory, name), { force: true });
  }
}

/** Text of the file; undefined if it does not exist. */
export async function readIfExists(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) return undefined;
    throw error;
  }
}

/** Names in a directory; empty if it does not exist. */
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
