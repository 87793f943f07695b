import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { type Program, type Suite, packagesOf, recipes, softwareOf, suites } from "./catalog.ts";
import { readManifest, newestIn, setNewestIn } from "./image-manifest.ts";
import { upstreamVersion } from "./package-set.ts";

/** A root file system with engines and tools, read-only in use and shared by all machines of the host. */
export interface NodeImage {
  /** `<suite>-<digest>`: the contents determine the id. */
  readonly id: string;
  readonly suite: Suite;
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

/** Pointer file to the newest image of a suite, for all checkouts with the same recipe. */
export function newestPath(imagesDir: string, suite: Suite): string {
  return join(imagesDir, "newest", `${suite}-${recipeDigest(suite)}`);
}

/** Sets the newest image, which all later creations without a choice use. */
export async function setNewest(imagesDir: string, suite: Suite, id: string): Promise<void> {
  await setNewestIn(newestPath(imagesDir, suite), id);
}

/** Id of the newest image of a suite, with or without its tree; undefined if none was built yet. */
export function newestId(imagesDir: string, suite: Suite): string | undefined {
  return newestIn(newestPath(imagesDir, suite));
}

/** The newest image of a suite; undefined if it is not on this host. */
export function findImage(imagesDir: string, suite: Suite): NodeImage | undefined {
  const id = newestId(imagesDir, suite);
  return id === undefined ? undefined : openImage(imagesDir, id);
}

/** The image with this id; undefined if it is not on this host. */
export function openImage(imagesDir: string, id: string): NodeImage | undefined {
  const suite = suiteOfImage(id);
  if (suite === undefined) return undefined;
  const root = join(imagesDir, id);
  if (!existsSync(root)) return undefined;
  return { id, suite, root, software: (program, version) => softwareOf(suite, program, version)?.path };
}

/** Undefined for text that is no image id. */
export function suiteOfImage(id: string): Suite | undefined {
  return suites.find((suite) => id.startsWith(`${suite}-`) && /^[0-9a-f]{16}$/.test(id.slice(suite.length + 1)));
}

/** Version of a program in images of this one's suite; undefined if suite or program is unknown. */
export function versionOfImage(id: string, program: string): string | undefined {
  const suite = suiteOfImage(id);
  return suite && recipes[suite].software.find((each) => each.program === program)?.version;
}

/** An image on this host with this program, and the program's directory inside it. */
export function findSoftware(
  imagesDir: string,
  program: Program,
  version: string,
): { image: NodeImage; software: string } | undefined {
  for (const suite of suites) {
    const software = softwareOf(suite, program, version)?.path;
    const image = software === undefined ? undefined : findImage(imagesDir, suite);
    if (software !== undefined && image !== undefined) return { image, software };
  }
  return undefined;
}

/** Full version of a program in an image, such as `17.11`; undefined if the manifest does not have it. */
export function versionIn(imagesDir: string, id: string, program: Program, version: string): string | undefined {
  const suite = suiteOfImage(id);
  const software = suite && softwareOf(suite, program, version);
  const has = readManifest(imagesDir, id)?.packages.find(({ name }) => name === software?.package);
  return has && upstreamVersion(has.version);
}

/** Digest of the recipe and the build script, not of the mirror's packages. */
function recipeDigest(suite: Suite): string {
  const recipe = JSON.stringify(packagesOf(suite)) + readFileSync(makeImageScript, "utf8");
  return createHash("sha256").update(recipe).digest("hex").slice(0, 16);
}
