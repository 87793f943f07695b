// Names in comments: an identifier in backticks exists in the code, so that a renaming cannot leave the old name there.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkout } from "./set-up.js";
import { sourceFiles } from "./source-files.js";

const comment = /\/\*[^]*?\*\/|(?<=^|\s)\/\/.*$/gm;
/** An identifier of several words: single words and names of environments are often those of other systems. */
const reference = /`([a-z][a-z0-9]*[A-Z][A-Za-z0-9]*)(?:\(\))?`/g;
const isCode = (path) => /\.(tsx?|js)$/.test(path);
const isRead = (path) => /\.(tsx?|m?js|proto|sql|sh|py|json|css|txt)$/.test(path) && !path.startsWith("proto/gen/");

/** Returns the number of files that it read; throws with each name that no file has outside of comments. */
export function checkCommentNames() {
  const files = new Map(
    sourceFiles()
      .filter(isRead)
      .map((path) => [path, readFileSync(join(checkout, path), "utf8")]),
  );
  const missing = missingNames(files);
  if (missing.length > 0) throw new Error(`names in comments that do not exist:\n${missing.join("\n")}`);
  return files.size;
}

/** Names in comments that no file has outside of comments, as `PATH: NAME`, by the texts of the files. */
export function missingNames(files) {
  const words = new Set();
  const references = [];
  for (const [path, text] of files) {
    const code = isCode(path) ? text.replaceAll(comment, " ") : text;
    for (const [word] of code.matchAll(/[A-Za-z_$][\w$]*/g)) words.add(word);
    if (!isCode(path)) continue;
    for (const [each] of text.matchAll(comment))
      for (const [, name] of each.matchAll(reference)) references.push({ path, name });
  }
  return references.filter(({ name }) => !words.has(name)).map(({ path, name }) => `${path}: ${name}`);
}
