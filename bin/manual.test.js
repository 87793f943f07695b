import { posix } from "node:path";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { checkLinks, linksOf } from "./links.js";
import { checkout } from "./set-up.js";
import { sourceFiles } from "./source-files.js";

const kinds = ["start", "how-to", "reference", "operate", "development"];
const pages = sourceFiles("docs").filter((path) => path.endsWith(".md"));
const linkedBy = (page) =>
  linksOf(readFileSync(`${checkout}/${page}`, "utf8")).map((target) =>
    posix.join(posix.dirname(page), target.split("#")[0]),
  );

test("every page has a kind, but for the index and the glossary", () => {
  const others = pages.filter((page) => !kinds.includes(page.split("/")[1]));
  expect(others.toSorted()).toEqual(["docs/README.md", "docs/glossary.md"]);
});

test("the index links to every page in the folder of a kind", () => {
  const direct = pages.filter((page) => page.split("/").length === 3);
  const indexed = new Set(linkedBy("docs/README.md"));
  expect(direct.filter((page) => !indexed.has(page))).toEqual([]);
});

test("a reader of the README gets to every page by links", () => {
  const reached = new Set(["README.md"]);
  for (const page of reached) if (page.endsWith(".md")) for (const target of linkedBy(page)) reached.add(target);
  expect(pages.filter((page) => !reached.has(page))).toEqual([]);
});

test("no link is dead", () => {
  expect(checkLinks()).toBeGreaterThan(500);
});

test("license and changelog are there, and the license is the package's", () => {
  expect(JSON.parse(readFileSync(`${checkout}/package.json`, "utf8")).license).toBe("Apache-2.0");
  expect(readFileSync(`${checkout}/LICENSE`, "utf8")).toMatch(/Apache License\s+Version 2\.0/);
  expect(readFileSync(`${checkout}/CHANGELOG.md`, "utf8")).toMatch(/^## 0\.1\.0/m);
});
