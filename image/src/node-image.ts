import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import type { Program, Suite } from "./catalogue.ts";
import { recipes, softwareOf, suites } from "./catalogue.ts";

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

/** Directory of a suite's image, whether it is made yet or not: `<imagesDir>/<suite>-<digest of its recipe>`. */
export function imageRoot(imagesDir: string, suite: Suite): string {
  const recipe = JSON.stringify(recipes[suite].packages) + readFileSync(makeImageScript, "utf8");
  const digest = createHash("sha256").update(recipe).digest("hex").slice(0, 16);
  return join(imagesDir, `${suite}-${digest}`);
}

/** The newest image of a suite, or undefined when none is made yet. */
export function findImage(imagesDir: string, suite: Suite): NodeImage | undefined {
  return openImage(imagesDir, basename(imageRoot(imagesDir, suite)));
}

/** The image with this id, or undefined when it is not here. */
export function openImage(imagesDir: string, id: string): NodeImage | undefined {
  const suite = suites.find((each) => id.startsWith(`${each}-`));
  if (suite === undefined || !/^[a-z0-9-]+$/.test(id)) return undefined;
  const root = join(imagesDir, id);
  if (!existsSync(root)) return undefined;
  return { id, suite, root, software: (program, version) => softwareOf(suite, program, version)?.path };
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
