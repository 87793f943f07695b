import { mkdtempSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { suiteOf } from "./catalogue.ts";
import { findImage, findSoftware, imageRoot, imagesDirectory } from "./node-image.ts";

test.each([
  ["postgresql", "17", "trixie"],
  ["postgresql", "18", "sid"],
  ["valkey", "8.1", "trixie"],
  ["valkey", "9", "sid"],
  ["postgresql", "9.6", undefined],
  ["oracle", "17", undefined],
])("%s %s is in %s", (program, version, suite) => {
  expect(suiteOf(program, version)).toBe(suite);
});

test("an image counts only once it is made", () => {
  const imagesDir = mkdtempSync(join(tmpdir(), "holdfast-images-"));
  expect(findImage(imagesDir, "trixie")).toBeUndefined();
  mkdirSync(imageRoot(imagesDir, "trixie"));
  expect(findImage(imagesDir, "trixie")?.software("postgresql", "17")).toBe("/usr/lib/postgresql/17");
  expect(findSoftware(imagesDir, "etcd", "3.5")?.software).toBe("/usr");
  expect(findSoftware(imagesDir, "valkey", "9")).toBeUndefined();
});

test("images are in the cache, which the environment can move", () => {
  expect(imagesDirectory({ HOME: "/home/ada" })).toBe("/home/ada/.cache/holdfast/images");
  expect(imagesDirectory({ HOME: "/home/ada", HOLDFAST_CACHE: "/big" })).toBe("/big/images");
});
