import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkout } from "./set-up.js";

test("the files of tests that `npm run faults` names exist", () => {
  const text = readFileSync(join(checkout, "bin", "faults.js"), "utf8");
  const names = [...text.matchAll(/"((?:test|agent)\/[\w/-]+)"/g)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(20);
  const isFile = (name) => ["", ".test.ts", ".long.test.ts"].some((end) => existsSync(join(checkout, `${name}${end}`)));
  expect(names.filter((name) => !isFile(name))).toEqual([]);
});
