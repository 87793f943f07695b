import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

const module = join(import.meta.dirname, "required-recipes.ts");
const checkout = join(import.meta.dirname, "../../..");

/** Prints the value of an expression of the module, on a host without images and without the means to build any. */
function onBareHost(expression: string): { printed: string; reported: unknown[] } {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-bare-"));
  const results = join(directory, "results.ndjson");
  const code = `const recipes = await import(${JSON.stringify(module)}); console.log(${expression});`;
  try {
    const printed = execFileSync(process.execPath, ["--input-type=module", "--eval", code], {
      cwd: checkout,
      encoding: "utf8",
      env: { PATH: directory, HOLDFAST_CACHE: directory, HOLDFAST_TEST_RESULTS: results },
    });
    const lines = readFileSync(results, "utf8").trim().split("\n");
    return { printed: printed.trim(), reported: lines.map((line) => JSON.parse(line)) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test("a recipe that a file requires and that cannot be built is reported, as a fault, with the reason", () => {
  const file = join(checkout, "test/system/some.test.ts");
  const { printed, reported } = onBareHost(`await recipes.requireRecipes(${JSON.stringify(file)}, "sid")`);
  expect(printed).toMatch(/^the image of sid cannot be built: the node image needs mmdebstrap/);
  expect(reported).toEqual([{ skipped: { tests: "test/system/some.test.ts", reason: printed, isFault: true } }]);
});

test("software of an image that was not built is reported with the command that builds it, and is no fault", () => {
  const { printed, reported } = onBareHost(`recipes.hasSoftware("valkey", "9")`);
  expect(printed).toBe("false");
  expect(reported).toEqual([
    { skipped: { tests: "tests of valkey 9", reason: "no image has it: holdfast images make sid", isFault: false } },
  ]);
});
