import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import type { GoProgram } from "@holdfast/image/artifact.ts";
import { ensureGoProgram, goProgramDirectory } from "@holdfast/image/go-program.ts";
import { ImageImpossible } from "@holdfast/image/image-impossible.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import { claimWork } from "../controller/claim.ts";
import { asRoot, testUid } from "../platform/platform-software.ts";
import { waitUntil } from "../wait-until.ts";

const buildMs = 1_800_000;

/** A third-party program for tests, or the reason why this host cannot have it. */
export interface TestGoProgram {
  /** Title, with the reason why its tests are skipped. */
  readonly title: string;
  /** Path of the program; undefined where it cannot be built. */
  readonly path: string | undefined;
}

/** The program of a Go module, built at the first call. */
export async function testGoProgram(program: GoProgram): Promise<TestGoProgram> {
  const name = basename(program.package);
  const imagesDir = imagesDirectory(process.env);
  // One of all tests builds it; concurrent tests wait for that.
  const isThere = async () => existsSync(goProgramDirectory(program, imagesDir)) || claimWork(name);
  await waitUntil(`the program of ${name} is built`, isThere, { withinMs: buildMs, everyMs: 500 });
  try {
    const progress = (line: string) => console.error(line);
    const directory = await ensureGoProgram(program, { imagesDir, uid: testUid, asRoot, progress });
    return { title: name, path: join(directory, name) };
  } catch (error) {
    if (error instanceof ImageImpossible) return { title: `${name} (skipped: ${error.message})`, path: undefined };
    throw error;
  }
}
