import { createHash } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { emptyIfAbsent } from "./image-manifest.ts";

/**
 * Uses of images by all installations that share an images directory: empty files `<imagesDir>/uses/<holder>/<image>`.
 * A holder is a directory of this host, such as the one with an installation's machines; its name here is the hash of
 * its path, which the file `directory` has.
 *
 * A use is written before the machine that needs the image, and withdrawn by its holder some time after the last need:
 * a crash in between leaves a use too many, never one too few.
 */
export interface ImageUses {
  /** Records that the image is needed from now on. */
  add(id: string): void;
  /** Withdraws the uses of other images, except for new ones. */
  keepOnly(ids: ReadonlySet<string>, now: number): Promise<void>;
}

const directoryFile = "directory";
const lent = new Set(["EACCES", "EPERM", "EROFS"]);
/** Time in which a holder creates the machine of a recorded use. */
const settlingMs = 3_600_000;
/** Time in which a holder's directory may be on an unmounted disk. */
const absentMs = 7 * 86_400_000;

export function openImageUses(imagesDir: string, holder: string): ImageUses {
  const own = join(imagesDir, "uses", createHash("sha256").update(holder).digest("hex").slice(0, 16));

  return {
    add(id) {
      try {
        mkdirSync(own, { recursive: true });
        if (!existsSync(join(own, directoryFile))) writeFileSync(join(own, directoryFile), `${holder}\n`);
        writeFileSync(join(own, id), "");
      } catch (error) {
        // Another user's directory, shared read-only: its owner sees the mounts, and retains the newest images.
        if (!(error instanceof Error && "code" in error && lent.has(String(error.code)))) throw error;
      }
    },
    async keepOnly(ids, now) {
      const names = await readdir(own).catch(emptyIfAbsent);
      // Updates the file's time, which proves to other sweeps that the holder exists.
      if (names.length > 0) writeFileSync(join(own, directoryFile), `${holder}\n`);
      for (const name of names) {
        if (name === directoryFile || ids.has(name)) continue;
        if (now - (await stat(join(own, name))).mtimeMs >= settlingMs) await rm(join(own, name), { force: true });
      }
    },
  };
}

/** Ids of all used images. Removes holders whose directory has been absent for long. */
export async function usedImages(imagesDir: string, now: number): Promise<Set<string>> {
  const used = new Set<string>();
  const root = join(imagesDir, "uses");
  for (const holder of await readdir(root).catch(emptyIfAbsent)) {
    const own = join(root, holder);
    const names = await readdir(own).catch(emptyIfAbsent);
    if (await isAbsent(join(own, directoryFile), now)) await rm(own, { recursive: true, force: true });
    else for (const name of names) if (name !== directoryFile) used.add(name);
  }
  return used;
}

/** False for a directory that cannot be examined, such as another user's. */
async function isAbsent(file: string, now: number): Promise<boolean> {
  const [text] = [await readFile(file, "utf8").catch(emptyIfAbsent)].flat();
  if (text === undefined) return false;
  try {
    await stat(text.trim());
    return false;
  } catch (error) {
    const isAway = error instanceof Error && "code" in error && error.code === "ENOENT";
    return isAway && now - (await stat(file)).mtimeMs >= absentMs;
  }
}
