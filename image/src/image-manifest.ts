import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import type { Suite } from "./catalog.ts";
import { digestOf, type ImageContents } from "./package-set.ts";

/** All that an image is made of. With the packages of the archive it is enough to make the same one again. */
export interface ImageManifest extends ImageContents {
  readonly id: string;
  readonly suite: Suite;
  /** What making it took; absent until it was made once. */
  readonly made?: {
    /** The first time, on whichever host; milliseconds since 1970. */
    readonly at: number;
    /** From the fetched packages to the finished tree. */
    readonly ms: number;
    readonly treeBytes: number;
  };
}

const suffix = ".json";

export function manifestPath(imagesDir: string, id: string): string {
  return join(imagesDir, id + suffix);
}

/** `<suite>-<digest of the contents>`, or with another name before it: the same contents have the same name. */
export function manifestOf(suite: Suite, contents: ImageContents, name: string = suite): ImageManifest {
  const { packages, script, installed } = contents;
  return { id: `${name}-${digestOf(contents)}`, suite, installed, script, packages };
}

/** Undefined when nothing is known of such an image. */
export function readManifest(imagesDir: string, id: string): ImageManifest | undefined {
  try {
    return JSON.parse(readFileSync(manifestPath(imagesDir, id), "utf8")) as ImageManifest;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/** Ids of the images that are here or can be made again, in order. */
export async function knownImageIds(imagesDir: string): Promise<string[]> {
  const names = await readdir(imagesDir).catch(emptyIfAbsent);
  const ids = names.flatMap((name) => /^([a-z]+-[0-9a-f]{16})(\.json)?$/.exec(name)?.[1] ?? []);
  return [...new Set(ids)].sort();
}

/** Every image that is known here, whether its tree is there or not. */
export async function readManifests(imagesDir: string): Promise<ImageManifest[]> {
  const names = await readdir(imagesDir).catch(emptyIfAbsent);
  const found = names.filter((name) => /^[a-z]+-[0-9a-f]{16}\.json$/.test(name));
  const texts = await Promise.all(found.map((name) => readFile(join(imagesDir, name), "utf8").catch(emptyIfAbsent)));
  return texts.flatMap((text) => (typeof text === "string" ? [JSON.parse(text) as ImageManifest] : []));
}

/** What the largest image that is known here takes with all its files, in bytes; 0 while none was made. */
export async function largestTreeBytes(imagesDir: string): Promise<number> {
  return Math.max(0, ...(await readManifests(imagesDir)).map(({ made }) => made?.treeBytes ?? 0));
}

/** Notes in the manifest what it took to make this directory, and how large that is. */
export async function noteMade(imagesDir: string, manifest: ImageManifest, root: string, ms: number): Promise<void> {
  const { stdout } = await runProgram("du", ["--summarize", "--block-size=1", "--one-file-system", root]);
  const made = { at: manifest.made?.at ?? Date.now(), ms, treeBytes: Number(stdout.split("\t")[0]) };
  await writeManifest(imagesDir, { ...manifest, made });
}

/** Whole or not at all. */
export async function writeManifest(imagesDir: string, manifest: ImageManifest): Promise<void> {
  await writeWhole(manifestPath(imagesDir, manifest.id), `${JSON.stringify(manifest, undefined, 1)}\n`);
}

/** Writes a file that others may read at any moment. */
export async function writeWhole(path: string, text: string): Promise<void> {
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
