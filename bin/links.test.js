import { expect, test } from "vitest";
import { isBroken, linksOf, pathsOf } from "./links.js";

test("links of the prose count, and code has none", () => {
  const text = "[a](a.md) `[b](b.md)` [c](https://c.example)\n```\n[d](d.md)\n```\n[e](#e)\n";
  expect(linksOf(text)).toEqual(["a.md", "#e"]);
});

test.each([
  ["README.md", "docs/reference/cli.md", false],
  ["README.md", "docs/none.md", true],
  ["docs/reference/events.md", "events/alert.md#alertfired", false],
  ["docs/reference/events.md", "events/alert.md#alertmoved", true],
  ["docs/how-to/alerts.md", "#none", true],
  ["docs/reference/events.md", "states", false],
])("a link of %s to %s", (page, target, expected) => {
  expect(isBroken(page, target)).toBe(expected);
});

test("paths of the glossary are those in the last column", () => {
  const text = "| term | meaning | where |\n|---|---|---|\n| a | of `b` | `c/d.ts`, `e/` |\n\n`f`\n";
  expect(pathsOf(text)).toEqual(["c/d.ts", "e/"]);
});
