import { existsSync } from "node:fs";
import { join } from "node:path";
import { recipes, suites } from "./catalog.ts";
import { findGuestBoot, isGuestBoot } from "./guest-boot.ts";
import { readManifests } from "./image-manifest.ts";
import { usedImages } from "./image-uses.ts";
import { newestId, versionIn } from "./node-image.ts";

/** An image in the list for operators. */
export interface ListedImage {
  readonly id: string;
  /** False if its tree is absent and the image can only be built again. */
  readonly unpacked: boolean;
  readonly newest: boolean;
  /** True if a holder needs it. */
  readonly used: boolean;
  readonly packages: number;
  /** Total size of its packages, bytes. */
  readonly packageBytes: number;
  /** Entries such as `postgresql 17.11`; for a guest kernel its two packages. */
  readonly software: readonly string[];
  readonly made?: { readonly at: number; readonly ms: number; readonly treeBytes: number };
}

/** Every image and guest kernel with a manifest on this host, the newest of each suite first. */
export async function listImages(imagesDir: string, now: number): Promise<ListedImage[]> {
  const used = await usedImages(imagesDir, now);
  const newest = new Set([...suites.map((suite) => newestId(imagesDir, suite)), findGuestBoot(imagesDir)?.id]);
  const listed = (await readManifests(imagesDir)).map(
    ({ id, suite, packages, made }): ListedImage => ({
      id,
      unpacked: existsSync(join(imagesDir, id)),
      newest: newest.has(id),
      used: used.has(id),
      packages: packages.length,
      packageBytes: packages.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      software: isGuestBoot(id)
        ? packages.map(({ name, version }) => `${name} ${version}`)
        : recipes[suite].software.map(
            ({ program, version }) => `${program} ${versionIn(imagesDir, id, program, version) ?? version}`,
          ),
      ...(made && { made }),
    }),
  );
  return listed.sort((a, b) => Number(b.newest) - Number(a.newest) || (b.made?.at ?? 0) - (a.made?.at ?? 0));
}
