import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sourceFiles } from "../../bin/source-files.js";

const checkout = join(import.meta.dirname, "../..");

/** Names that a pattern's first group finds in the controller's code, each with its file. */
function namesIn(pattern: RegExp): readonly (readonly [name: string, file: string])[] {
  return sourceFiles("controller/src")
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
    .flatMap((path) =>
      [...readFileSync(join(checkout, path), "utf8").matchAll(pattern)].map(([, name = ""]) => [name, path] as const),
    );
}

test("no kind of object is stored below a prefix that other keys have", () => {
  const kinds = namesIn(/defineKind(?:<[^>]*>)?\(\s*"([^"]+)"/g);
  const prefixes = namesIn(/`\$\{root\}\/([a-z-]+)\//g);
  expect(kinds.length).toBeGreaterThan(30);
  expect(prefixes.length).toBeGreaterThan(8);
  const owners = new Map(prefixes);
  expect(kinds.filter(([name]) => owners.has(name))).toEqual([]);
  expect(new Set(kinds.map(([name]) => name)).size).toBe(kinds.length);
});
