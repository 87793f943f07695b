import { createHash } from "node:crypto";
import { relative } from "node:path";
import { type Program, type RecipeName, recipeOf } from "@holdfast/image/catalog.ts";
import { ImageImpossible } from "@holdfast/image/image-impossible.ts";
import { ensureImage } from "@holdfast/image/make-image.ts";
import { findImage, findSoftware, imagesDirectory } from "@holdfast/image/node-image.ts";
import { claimWork } from "../controller/claim.ts";
import { reportSkipped } from "../platform/test-reports.ts";
import { waitUntil } from "../wait-until.ts";

const buildMs = 1_800_000;
const imagesDir = imagesDirectory(process.env);
const ofDirectory = createHash("sha256").update(imagesDir).digest("hex").slice(0, 8);

/**
 * Builds the newest images of the recipes that a test file needs, where this host lacks them. Returns the reason if one
 * cannot be built: the file then skips its tests, the summary of the run has the reason, and continuous integration
 * fails.
 */
export async function requireRecipes(file: string, ...recipes: RecipeName[]): Promise<string | undefined> {
  for (const recipe of recipes) {
    // One test builds the image; concurrent tests wait for it.
    const isThere = async () =>
      findImage(imagesDir, recipe) !== undefined || claimWork(`recipe-${recipe}-${ofDirectory}`);
    await waitUntil(`the image of ${recipe} is built`, isThere, { withinMs: buildMs, everyMs: 500 });
    try {
      await ensureImage({ imagesDir, recipe, progress: (line) => console.error(line) });
    } catch (error) {
      if (!(error instanceof ImageImpossible)) throw error;
      const reason = `the image of ${recipe} cannot be built: ${error.message}`;
      reportSkipped({ tests: relative(process.cwd(), file), reason, isFault: true });
      return reason;
    }
  }
  return undefined;
}

/** True if an image with this version was built. If not, the summary of the run names the tests that are skipped. */
export function hasSoftware(program: Program, version: string): boolean {
  if (findSoftware(imagesDir, program, version) !== undefined) return true;
  const remedy = `holdfast images make ${recipeOf(program, version) ?? ""}`.trim();
  reportSkipped({ tests: `tests of ${program} ${version}`, reason: `no image has it: ${remedy}`, isFault: false });
  return false;
}
