import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { readdir, readFile, rename, writeFile, mkdir } from "node:fs/promises";
import { join, dirname } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import type { Suite } from "./recipe.ts";
import { digestOf, type ImageContents } from "./package-set.ts";

/**
 * Complete description of an image: with the packages and artifacts of the archives it is sufficient to build the same
 * image again.
 */
export interface ImageManifest extends ImageContents {
  readonly id: string;
  readonly suite: Suite;
  /** Result of the first build; absent before it. */
  readonly made?: {
    /** Time of the first build on any host, in milliseconds since 1970. */
    readonly at: number;
    /** Duration from the fetched packages to the finished tree, milliseconds. */
    readonly ms: number;
    readonly treeBytes: number;
  };
}

const suffix = ".json";

export function manifestPath(imagesDir: string, id: string): string {
  return join(imagesDir, id + suffix);
}

/** Manifest with the id `<recipe>-<digest of the contents>`: equal contents have equal ids. */
export function manifestOf(suite: Suite, contents: ImageContents, recipe: string = suite): ImageManifest {
  const { packages, script, installed, artifacts } = contents;
  return {
    id: `${recipe}-${digestOf(contents)}`,
    suite,
    installed,
    script,
    packages,
    ...(artifacts && { artifacts }),
  };
}

/** True for the id of a node image of any recipe, or of a guest kernel. */
export function isImageId(text: string): boolean {
  return /^[a-z]+-[0-9a-f]{16}$/.test(text);
}

/** Reads a manifest; undefined if the image has none on this host. */
export function readManifest(imagesDir: string, id: string): ImageManifest | undefined {
  try {
    return JSON.parse(readFileSync(manifestPath(imagesDir, id), "utf8")) as ImageManifest;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** Ids of the images that are on this host or can be built again, in order. */
export async function imageIdsIn(imagesDir: string): Promise<string[]> {
  const names = await readdir(imagesDir).catch(emptyIfAbsent);
  return [...new Set(names.map(withoutSuffix).filter(isImageId))].sort();
}

/** Manifests of all images on this host, with or without a tree. */
export async function readManifests(imagesDir: string): Promise<ImageManifest[]> {
  const names = await readdir(imagesDir).catch(emptyIfAbsent);
  const found = names.filter((name) => name.endsWith(suffix) && isImageId(withoutSuffix(name)));
  const texts = await Promise.all(found.map((name) => readFile(join(imagesDir, name), "utf8").catch(emptyIfAbsent)));
  return texts.flatMap((text) => (typeof text === "string" ? [JSON.parse(text) as ImageManifest] : []));
}

function withoutSuffix(name: string): string {
  return name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
}

/** Size of the largest image tree, bytes; 0 if none was built yet. */
export async function largestTreeBytes(imagesDir: string): Promise<number> {
  return Math.max(0, ...(await readManifests(imagesDir)).map(({ made }) => made?.treeBytes ?? 0));
}

/** Records duration and size of a build in the manifest. */
export async function recordBuild(imagesDir: string, manifest: ImageManifest, root: string, ms: number): Promise<void> {
  const { stdout } = await runProgram("du", ["--summarize", "--block-size=1", "--one-file-system", root]);
  const made = { at: manifest.made?.at ?? Date.now(), ms, treeBytes: Number(stdout.split("\t")[0]) };
  await writeManifest(imagesDir, { ...manifest, made });
}

/** Replaces the manifest atomically. */
export async function writeManifest(imagesDir: string, manifest: ImageManifest): Promise<void> {
  await writeAtomically(manifestPath(imagesDir, manifest.id), `${JSON.stringify(manifest, undefined, 1)}\n`);
}

/** Replaces a file that other processes may read at any time. */
async function writeAtomically(path: string, text: string): Promise<void> {
  const partial = `${path}.${randomUUID()}.partial`;
  await writeFile(partial, text);
  await rename(partial, path);
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

export function emptyIfAbsent(error: unknown): string[] {
  if (isAbsent(error)) return [];
  throw error;
}

/** Id in a pointer file below `<imagesDir>/newest`; undefined if there is none yet. */
export function newestIn(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    // The pointer does not exist yet.
    return undefined;
  }
}

/** Sets the pointer, which selects the image of all later creations without a choice. */
export async function setNewestIn(path: string, id: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeAtomically(path, `${id}\n`);
}
