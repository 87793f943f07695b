// The handwritten files of the checkout, without git, which a new machine does not have.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { checkout } from "./set-up.js";

/** Packages link to each other in node_modules; a plain recursive listing would follow the links without end. */
const skipped = new Set(["node_modules", ".git", ".holdfast", "dist", "coverage"]);

/** Paths in the checkout of all files below one of its folders; "" is the root. */
export function sourceFiles(folder = "") {
  return readdirSync(join(checkout, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : sourceFiles(path);
    return entry.isFile() ? [path] : [];
  });
}
