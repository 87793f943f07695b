import { createHash } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { emptyIfAbsent } from "./image-manifest.ts";

/**
 * Who uses which image, over all that share an images directory: `<imagesDir>/uses/<holder>/<image>`, an empty file each. A
 * holder is a directory of this host, such as the one with an installation's machines; its name here is the hash of its path,
 * which stands in the file `directory`. Backups, when they need the image of their time, are a holder of their own.
 *
 * A use is written before whatever needs the image is, and withdrawn by the holder alone, some time after nothing needs it:
 * a crash in between leaves a use too many, never one too few.
 */
export interface ImageUses {
  /** Says that the image is needed from now on. */
  add(id: string): void;
  /** Takes back what is neither among these nor as young as what is just being made. */
  keepOnly(ids: ReadonlySet<string>, now: number): Promise<void>;
}

const directoryFile = "directory";
const lent = new Set(["EACCES", "EPERM", "EROFS"]);
/** Whoever has said that an image is needed has made what needs it within this time. */
const settlingMs = 3_600_000;
/** The directory of a holder may be on a disk that is away for a while. */
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
        // Another user's directory, lent for reading: its owner sees what is mounted, and keeps the newest.
        if (!(error instanceof Error && "code" in error && lent.has(String(error.code)))) throw error;
      }
    },
    async keepOnly(ids, now) {
      const names = await readdir(own).catch(emptyIfAbsent);
      // Seen: whoever else looks at it knows that the holder is alive.
      if (names.length > 0) writeFileSync(join(own, directoryFile), `${holder}\n`);
      for (const name of names) {
        if (name === directoryFile || ids.has(name)) continue;
        if (now - (await stat(join(own, name))).mtimeMs >= settlingMs) await rm(join(own, name), { force: true });
      }
    },
  };
}

/** Every image that a holder needs. Holders whose directory is gone for long are forgotten. */
export async function usedImages(imagesDir: string, now: number): Promise<Set<string>> {
  const used = new Set<string>();
  const root = join(imagesDir, "uses");
  for (const holder of await readdir(root).catch(emptyIfAbsent)) {
    const own = join(root, holder);
    const names = await readdir(own).catch(emptyIfAbsent);
    if (await isGone(join(own, directoryFile), now)) await rm(own, { recursive: true, force: true });
    else for (const name of names) if (name !== directoryFile) used.add(name);
  }
  return used;
}

/** One that cannot be looked at, such as another user's, is there. */
async function isGone(file: string, now: number): Promise<boolean> {
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
