import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sourceFiles } from "../../bin/source-files.js";

/** Programs without a handler for unhandled faults: such a fault ends them, and the starter reports that. */
// biome-ignore format: a table, aligned so that it reads as one
const others: Readonly<Record<string, string>> = {
  "cli/src/main.ts":                          "a command of a user",
  "controller/src/operator/recovery/main.ts": "a command of an operator",
  "image/src/main.ts":                        "a command that builds images",
};

const textOf = (path: string) => readFileSync(join(import.meta.dirname, "../..", path), "utf8");

test("every process that serves logs faults that no code handled, and declares what it does after one", () => {
  const programs = (sourceFiles() as string[]).filter((path) => /^(?!bench|test)[a-z]+\/.*\bmain\.ts$/.test(path));
  expect(programs.length).toBeGreaterThan(9);
  const without = programs.filter((path) => !/^ *watchProcessFaults\(\{\s+role: "\w+"/m.test(textOf(path)));
  expect(without.toSorted()).toEqual(Object.keys(others));
});
