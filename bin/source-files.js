// The files of the checkout that are written by hand, without asking git, which a fresh machine does not have.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { checkout } from "./set-up.js";

/** Packages link to each other in node_modules, which a plain recursive listing would follow round and round. */
const skipped = new Set(["node_modules", ".git", ".holdfast", "dist", "coverage"]);

/** Paths in the checkout of all files below a folder of it; "" is all of it. */
export function sourceFiles(folder = "") {
  return readdirSync(join(checkout, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : sourceFiles(path);
    return entry.isFile() ? [path] : [];
  });
}
