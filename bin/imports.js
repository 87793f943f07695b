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
  const own = /^@holdfast\/([a-z]+)\/(.+)$/.exec(specifier);
  if (own === null) return [];
  return [own[1] === "test" ? `test/${own[2]}` : `${own[1]}/src/${own[2]}`];
}

/** Foreign packages and generated code have no text here. */
function textOf(file) {
  const path = join(checkout, file);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}
