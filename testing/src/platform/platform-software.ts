import { chownSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Program } from "@holdfast/image/catalog.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import type { PlatformProgram } from "@holdfast/image/platform-program.ts";
import { findPlatformProgram } from "@holdfast/image/platform-program.ts";

/** User that programs of tests run as, when the tests run as root. */
export const testUid = 65_533;

export const asRoot = process.getuid?.() === 0;

/** The real program, as the platform would run it; throws unless `npm test` has installed it. */
export function testProgram(program: Program, version: string): PlatformProgram {
  const found = findPlatformProgram(imagesDirectory(process.env), program, version, process.env);
  if (found === undefined) throw new Error(`no ${program} ${version}: run holdfast images make`);
  return found;
}

/** An empty directory that the program's user owns; the caller removes it. */
export function programDirectory(prefix: string): string {
  const directory = mkdtempSync(join(tmpdir(), `${prefix}-`));
  if (asRoot) chownSync(directory, testUid, testUid);
  return directory;
}
