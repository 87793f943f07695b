import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { writeWhole } from "./image-manifest.ts";

/** Id in a file below `<imagesDir>/newest` that says which of a kind is the newest; undefined when none was made yet. */
export function newestIn(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    // None was made yet.
    return undefined;
  }
}

/** From now on whatever is made without a choice has this one. */
export async function setNewestIn(path: string, id: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeWhole(path, `${id}\n`);
}
