import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { type Program, type RecipeName, packagesOf, recipeNames, recipes, softwareOf } from "./catalog.ts";
import { type Additions, noAdditions } from "./additions.ts";
import { isImageId, newestIn, readManifest, setNewestIn } from "./image-manifest.ts";
import { upstreamVersion } from "./package-set.ts";

/** A root file system with engines and tools, read-only in use and shared by all machines of the host. */
export interface NodeImage {
  /** `<recipe>-<digest>`: the contents determine the id. */
  readonly id: string;
  /** Directory of the root file system on this host. */
  readonly root: string;
  /** Directory inside the image with the program in `bin`; undefined if the image does not have this version. */
  software(program: Program, version: string): string | undefined;
}

/** HOLDFAST_CACHE, or `~/.cache/holdfast`: files that can be created again, shared by all checkouts. */
export function cacheDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  return environment["HOLDFAST_CACHE"] ?? join(environment["HOME"] ?? homedir(), ".cache", "holdfast");
}

/** Images directory: `<cache>/images`. */
export function imagesDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  return join(cacheDirectory(environment), "images");
}

/** The build script of images; part of their digest. */
export const makeImageScript = join(import.meta.dirname, "..", "make-image.sh");
/** The script that adds artifacts; part of the digest of images that have any. */
export const addArtifactsScript = join(import.meta.dirname, "..", "add-artifacts.sh");

/**
 * Pointer file to the newest image of a recipe, for all checkouts and operators with the same contents of it.
 */
export function newestPath(imagesDir: string, recipe: RecipeName, additions = noAdditions): string {
  return join(imagesDir, "newest", `${recipe}-${recipeDigest(recipe, additions)}`);
}

/** Sets the newest image, which all later creations without a choice use. */
export async function setNewest(
  imagesDir: string,
  recipe: RecipeName,
  id: string,
  additions = noAdditions,
): Promise<void> {
  await setNewestIn(newestPath(imagesDir, recipe, additions), id);
}

/** Id of the newest image of a recipe, with or without its tree; undefined if none was built yet. */
export function newestId(imagesDir: string, recipe: RecipeName, additions = noAdditions): string | undefined {
  return newestIn(newestPath(imagesDir, recipe, additions));
}

/** The newest image of a recipe; undefined if it is not on this host. */
export function findImage(imagesDir: string, recipe: RecipeName, additions = noAdditions): NodeImage | undefined {
  const id = newestId(imagesDir, recipe, additions);
  return id === undefined ? undefined : openImage(imagesDir, id);
}

/** The image with this id, of any recipe; undefined if it is not on this host. */
export function openImage(imagesDir: string, id: string): NodeImage | undefined {
  const root = join(imagesDir, id);
  if (!isImageId(id) || !existsSync(root)) return undefined;
  const recipe = recipeOfImage(id);
  return { id, root, software: (program, version) => recipe && softwareOf(recipe, program, version)?.path };
}

/** Recipe of an image id; undefined for another text, and for a recipe that this checkout does not have. */
export function recipeOfImage(id: string): RecipeName | undefined {
  return isImageId(id) ? recipeNames.find((name) => id.startsWith(`${name}-`)) : undefined;
}

/** Version of a program in images of the image's recipe; undefined if recipe or program is unknown. */
export function versionOfImage(id: string, program: string): string | undefined {
  const recipe = recipeOfImage(id);
  return recipe && recipes[recipe].software.find((each) => each.program === program)?.version;
}

/** An image on this host with this program, and the program's directory inside it. */
export function findSoftware(
  imagesDir: string,
  program: Program,
  version: string,
): { image: NodeImage; software: string } | undefined {
  for (const recipe of recipeNames) {
    const software = softwareOf(recipe, program, version)?.path;
    const image = software === undefined ? undefined : findImage(imagesDir, recipe);
    if (software !== undefined && image !== undefined) return { image, software };
  }
  return undefined;
}

/** Full version of a program in an image, such as `17.11`; undefined if the manifest does not have it. */
export function versionIn(imagesDir: string, id: string, program: string, version: string): string | undefined {
  const recipe = recipeOfImage(id);
  const software = recipe && softwareOf(recipe, program, version);
  const manifest = readManifest(imagesDir, id);
  const contents = [...(manifest?.packages ?? []), ...(manifest?.artifacts?.files ?? [])];
  const has = contents.find(({ name }) => name === software?.package);
  return has && upstreamVersion(has.version);
}

/** Digest of the recipe, its additions and the scripts, not of the mirror's packages. */
function recipeDigest(name: RecipeName, additions: Additions): string {
  const { artifacts } = recipes[name];
  const added = artifacts === undefined ? "" : JSON.stringify(artifacts) + readFileSync(addArtifactsScript, "utf8");
  const own = (additions[name]?.artifacts ?? []).map(({ sha256, path }) => `\n${sha256} ${path}`).join("");
  const text = JSON.stringify(packagesOf(recipes[name])) + readFileSync(makeImageScript, "utf8") + added + own;
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
