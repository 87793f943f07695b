import { createHash } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { emptyIfAbsent } from "./image-manifest.ts";

/**
 * Uses of images by all installations that share an images directory: empty files `<imagesDir>/uses/<holder>/<image>`.
 * A holder is a directory of this host, such as the directory of an installation's machines. `<holder>` is a hash of
 * its path, and the file `<imagesDir>/uses/<holder>/directory` has the path.  A use is written before the machine that
 * needs the image, and removed by its holder at least an hour later, once no machine needs it: a crash in between
 * leaves a use that is not needed, never a need without a use.
 */
export interface ImageUses {
  /** Records that the image is needed from now on. */
  add(id: string): void;
  /** Removes the uses of other images, except uses of the last hour. */
  keepOnly(ids: ReadonlySet<string>, now: number): Promise<void>;
}

const directoryFile = "directory";
const readOnlyCodes = new Set(["EACCES", "EPERM", "EROFS"]);
/** Maximum time from a recorded use to the creation of its machine. */
const creationTimeoutMs = 3_600_000;
/** Time for which an absent directory of a holder counts: it may be on an unmounted disk. */
const absenceToleranceMs = 7 * 86_400_000;

export function openImageUses(imagesDir: string, holder: string): ImageUses {
  const usesDirectory = join(imagesDir, "uses", createHash("sha256").update(holder).digest("hex").slice(0, 16));

  return {
    add(id) {
      try {
        mkdirSync(usesDirectory, { recursive: true });
        const file = join(usesDirectory, directoryFile);
        if (!existsSync(file)) writeFileSync(file, `${holder}\n`);
        writeFileSync(join(usesDirectory, id), "");
      } catch (error) {
        // Another user's directory, shared read-only: its owner sees the mounts, and retains the newest images.
        if (!(error instanceof Error && "code" in error && readOnlyCodes.has(String(error.code)))) throw error;
      }
    },
    async keepOnly(ids, now) {
      const names = await readdir(usesDirectory).catch(emptyIfAbsent);
      // Updates the file's time, which proves to other sweeps that the holder exists.
      if (names.length > 0) writeFileSync(join(usesDirectory, directoryFile), `${holder}\n`);
      for (const name of names) {
        if (name === directoryFile || ids.has(name)) continue;
        const use = join(usesDirectory, name);
        if (now - (await stat(use)).mtimeMs >= creationTimeoutMs) await rm(use, { force: true });
      }
    },
  };
}

/** Ids of all used images. Removes holders whose directory has been absent for a week. */
export async function usedImages(imagesDir: string, now: number): Promise<Set<string>> {
  const used = new Set<string>();
  const root = join(imagesDir, "uses");
  for (const holder of await readdir(root).catch(emptyIfAbsent)) {
    const uses = join(root, holder);
    const names = await readdir(uses).catch(emptyIfAbsent);
    if (await isAbsent(join(uses, directoryFile), now)) await rm(uses, { recursive: true, force: true });
    else for (const name of names) if (name !== directoryFile) used.add(name);
  }
  return used;
}

/** True if a holder's directory is absent; false if it cannot be examined, such as another user's. */
async function isAbsent(file: string, now: number): Promise<boolean> {
  const [text] = [await readFile(file, "utf8").catch(emptyIfAbsent)].flat();
  if (text === undefined) return false;
  try {
    await stat(text.trim());
    return false;
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    return isMissing && now - (await stat(file)).mtimeMs >= absenceToleranceMs;
  }
}
