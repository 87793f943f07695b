// The links of the pages: each target is a file of the checkout, and its fragment a heading of that page. The glossary
// names where the code of each term is.
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { checkout } from "./set-up.js";
import { sourceFiles } from "./source-files.js";

const linkForm = /\]\(([^()\s]+)\)/g;

/** Returns the number of links that it followed; throws with each broken one. */
export function checkLinks() {
  const pages = sourceFiles().filter((path) => path.endsWith(".md"));
  const links = pages.flatMap((page) => linksOf(textOf(page)).map((target) => ({ page, target })));
  const broken = links.filter(({ page, target }) => isBroken(page, target));
  const lines = broken.map(({ page, target }) => `${page}: ${target}`);
  if (lines.length > 0) throw new Error(`These links have no target:\n${lines.join("\n")}`);
  return links.length;
}

/** Returns the number of paths that the glossary names; throws with each that does not exist. */
export function checkGlossary() {
  const paths = pathsOf(textOf("docs/glossary.md"));
  const missing = paths.filter((path) => !existsSync(join(checkout, path)));
  if (missing.length > 0) throw new Error(`docs/glossary.md names paths that do not exist:\n${missing.join("\n")}`);
  return paths.length;
}

/** Paths in the last column of the tables of a page. */
export function pathsOf(text) {
  const cells = [...text.matchAll(/^\|.*\|([^|\n]*)\|$/gm)].map(([, cell]) => cell);
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, path]) => path));
}

/** Targets of the links in a page, except external ones and those in code. */
export function linksOf(text) {
  const prose = text.replaceAll(/^```[^]*?^```$/gm, "").replaceAll(/`[^`\n]*`/g, "code");
  const targets = [...prose.matchAll(linkForm)].map(([, target]) => target);
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}

/** True if the target does not exist, or has no such heading. */
export function isBroken(page, target) {
  const [path, heading] = target.split("#");
  const file = path === "" ? page : posix.join(dirname(page), path);
  if (!existsSync(join(checkout, file))) return true;
  return heading !== undefined && statSync(join(checkout, file)).isFile() && !headingsOf(file).has(heading);
}

/** Anchors of the page's headings, by the rules of GitHub. */
function headingsOf(page) {
  const text = textOf(page).replaceAll(/^```[^]*?^```$/gm, "");
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading);
  const slug = (heading) =>
    heading
      .toLowerCase()
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-");
  return new Set(headings.map(slug));
}

function textOf(page) {
  return readFileSync(join(checkout, page), "utf8");
}
