import { existsSync } from "node:fs";
import { join } from "node:path";
import { recipeNames, recipes } from "./catalog.ts";
import { findGuestBoot, isGuestBoot } from "./guest-boot.ts";
import { readManifests } from "./image-manifest.ts";
import { usedImages } from "./image-uses.ts";
import { noAdditions } from "./additions.ts";
import { newestId, recipeOfImage, versionIn } from "./node-image.ts";

/** An image in the list for operators. */
export interface ListedImage {
  readonly id: string;
  /** False if its tree is absent and the image can only be built again. */
  readonly unpacked: boolean;
  readonly newest: boolean;
  /** True if a holder needs it. */
  readonly used: boolean;
  readonly packages: number;
  readonly artifacts: number;
  /** Total size of its packages and artifacts, bytes. */
  readonly archivedBytes: number;
  /** Entries such as `postgresql 17.11`; for a guest kernel its two packages. */
  readonly software: readonly string[];
  readonly made?: { readonly at: number; readonly ms: number; readonly treeBytes: number };
}

/** Every image and guest kernel with a manifest on this host, the newest of each recipe first. */
export async function listImages(imagesDir: string, now: number, additions = noAdditions): Promise<ListedImage[]> {
  const used = await usedImages(imagesDir, now);
  const ofRecipes = recipeNames.map((recipe) => newestId(imagesDir, recipe, additions));
  const newest = new Set([...ofRecipes, findGuestBoot(imagesDir)?.id]);
  const listed = (await readManifests(imagesDir)).map(
    ({ id, packages, artifacts: { files = [] } = {}, made }): ListedImage => ({
      id,
      unpacked: existsSync(join(imagesDir, id)),
      newest: newest.has(id),
      used: used.has(id),
      packages: packages.length,
      artifacts: files.length,
      archivedBytes: [...packages, ...files].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
      software: isGuestBoot(id) ? packages.map(({ name, version }) => `${name} ${version}`) : softwareIn(imagesDir, id),
      ...(made && { made }),
    }),
  );
  return listed.sort((a, b) => Number(b.newest) - Number(a.newest) || (b.made?.at ?? 0) - (a.made?.at ?? 0));
}

/** Programs in an image; empty for an image of a recipe that this checkout does not have. */
function softwareIn(imagesDir: string, id: string): string[] {
  const recipe = recipeOfImage(id);
  const software = recipe === undefined ? [] : recipes[recipe].software;
  return software.map(({ program, version }) => `${program} ${versionIn(imagesDir, id, program, version) ?? version}`);
}
