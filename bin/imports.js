// The imports between the files of the checkout, read from their text.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { checkout } from "./set-up.js";

const importForm = /(?:\bfrom|\bimport)\s*\(?\s*["']([^"'\n]+)["']/g;

/** Paths in the checkout that a file imports. */
export function importsOf(file) {
  return specifiersOf(textOf(file)).flatMap((specifier) => pathsOf(file, specifier));
}

function specifiersOf(text) {
  return [...text.matchAll(importForm)].map(([, specifier]) => specifier);
}

function pathsOf(file, specifier) {
  if (specifier.startsWith(".")) return [posix.join(dirname(file), specifier)];
  if (specifier.startsWith("#")) return [`${file.split("/")[0]}/src/${specifier.slice(1)}`];
  const match = /^@holdfast\/([a-z]+)\/(.+)$/.exec(specifier);
  if (match === null) return [];
  return [match[1] === "test" ? `test/${match[2]}` : `${match[1]}/src/${match[2]}`];
}

/** Text of a file of the checkout; empty for other packages and generated code. */
function textOf(file) {
  const path = join(checkout, file);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}
