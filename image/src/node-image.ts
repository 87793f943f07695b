import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Program, Suite } from "./catalog.ts";
import { packagesOf, recipes, softwareOf, suites } from "./catalog.ts";
import { readManifest } from "./image-manifest.ts";
import { newestIn, setNewestIn } from "./newest-pointer.ts";
import { upstreamVersion } from "./package-set.ts";

/** A root file system with engines and tools, read-only in use and shared by every machine of the host. */
export interface NodeImage {
  /** `<suite>-<digest>`: what is in it decides its name. */
  readonly id: string;
  readonly suite: Suite;
  /** Directory of the root file system on this host. */
  readonly root: string;
  /** Directory inside the image whose `bin` has the program; undefined when the image has not this version. */
  software(program: Program, version: string): string | undefined;
}

/** What HOLDFAST_CACHE says, or `~/.cache/holdfast`: everything that can be made again, shared by all checkouts. */
export function cacheDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  return environment["HOLDFAST_CACHE"] ?? join(environment["HOME"] ?? homedir(), ".cache", "holdfast");
}

/** Where images are kept: `<cache>/images`. */
export function imagesDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  return join(cacheDirectory(environment), "images");
}

/** Makes an image; part of its digest. */
export const makeImageScript = join(import.meta.dirname, "..", "make-image.sh");

/** Where it stands which image of a suite is the newest, for all checkouts whose recipe for it is the same as this one's. */
export function newestPath(imagesDir: string, suite: Suite): string {
  return join(imagesDir, "newest", `${suite}-${recipeDigest(suite)}`);
}

/** From now on whatever is made without a choice has this one. */
export async function setNewest(imagesDir: string, suite: Suite, id: string): Promise<void> {
  await setNewestIn(newestPath(imagesDir, suite), id);
}

/** Id of the newest image of a suite, whether its tree is there or not; undefined when none was made yet. */
export function newestId(imagesDir: string, suite: Suite): string | undefined {
  return newestIn(newestPath(imagesDir, suite));
}

/** The newest image of a suite, or undefined when it is not here. */
export function findImage(imagesDir: string, suite: Suite): NodeImage | undefined {
  const id = newestId(imagesDir, suite);
  return id === undefined ? undefined : openImage(imagesDir, id);
}

/** The image with this id, or undefined when it is not here. */
export function openImage(imagesDir: string, id: string): NodeImage | undefined {
  const suite = suiteOfImage(id);
  if (suite === undefined) return undefined;
  const root = join(imagesDir, id);
  if (!existsSync(root)) return undefined;
  return { id, suite, root, software: (program, version) => softwareOf(suite, program, version)?.path };
}

/** Undefined for what is no image's id. */
export function suiteOfImage(id: string): Suite | undefined {
  return suites.find((suite) => id.startsWith(`${suite}-`) && /^[0-9a-f]{16}$/.test(id.slice(suite.length + 1)));
}

/** The version of a program that images of this one's suite have; undefined where the suite, or the program in it, is not known. */
export function versionOfImage(id: string, program: string): string | undefined {
  const suite = suiteOfImage(id);
  return suite && recipes[suite].software.find((each) => each.program === program)?.version;
}

/** A made image that has this program, with the program's directory inside it. */
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

/** Full version of a program in an image, such as `17.11`; undefined when the image's manifest does not tell. */
export function versionIn(imagesDir: string, id: string, program: Program, version: string): string | undefined {
  const suite = suiteOfImage(id);
  const software = suite && softwareOf(suite, program, version);
  const has = readManifest(imagesDir, id)?.packages.find(({ name }) => name === software?.package);
  return has && upstreamVersion(has.version);
}

/** Changes with what the recipe asks for and what is done to it; not with what the mirror has. */
function recipeDigest(suite: Suite): string {
  const recipe = JSON.stringify(packagesOf(suite)) + readFileSync(makeImageScript, "utf8");
  return createHash("sha256").update(recipe).digest("hex").slice(0, 16);
}
