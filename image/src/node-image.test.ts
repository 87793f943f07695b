import { mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { recipeNames, recipeOf, recipes } from "./catalog.ts";
import { type ImageManifest, isImageId, manifestOf, readManifest } from "./image-manifest.ts";
import { findImage, findSoftware, imagesDirectory, openImage, setNewest } from "./node-image.ts";
import { textLibrariesOf } from "./text-libraries.ts";
import { partial } from "@holdfast/testing/partial.ts";

test.each([
  ["postgresql", "17", "trixie"],
  ["postgresql", "18", "sid"],
  ["valkey", "8.1", "trixie"],
  ["valkey", "9", "sid"],
  ["postgresql", "9.6", undefined],
  ["oracle", "17", undefined],
])("%s %s is in %s", (program, version, recipe) => {
  expect(recipeOf(program, version)).toBe(recipe);
});

test("an image counts only once it is built and set as the newest", async () => {
  const imagesDir = mkdtempSync(join(tmpdir(), "holdfast-images-"));
  const [older, newer] = ["trixie-0000000000000001", "trixie-0000000000000002"];
  for (const id of [older, newer]) {
    expect(findImage(imagesDir, "trixie")?.id).not.toBe(id);
    await setNewest(imagesDir, "trixie", id);
    expect(findImage(imagesDir, "trixie")).toBeUndefined();
    mkdirSync(join(imagesDir, id));
    expect(findImage(imagesDir, "trixie")?.id).toBe(id);
  }
  expect(openImage(imagesDir, older)?.root).toBe(join(imagesDir, older));
  for (const no of ["trixie-1", "../trixie-0000000000000001", "woody-0000000000000001", "packages"])
    expect(openImage(imagesDir, no)).toBeUndefined();
  expect(findImage(imagesDir, "trixie")?.software("postgresql", "17")).toBe("/usr/lib/postgresql/17");
  expect(findSoftware(imagesDir, "etcd", "3.5")?.software).toBe("/usr");
  expect(findSoftware(imagesDir, "valkey", "9")).toBeUndefined();
});

test("names of recipes are letters, so that ids of images are recognized by their form", () => {
  for (const name of recipeNames) expect(isImageId(`${name}-0123456789abcdef`), name).toBe(true);
  expect(recipeNames).not.toContain("guest");
});

test("artifacts are below /usr/local, each at a different path", () => {
  for (const { artifacts = [] } of Object.values(recipes)) {
    const paths = artifacts.map(({ path }) => path);
    expect(new Set(paths).size).toBe(paths.length);
    for (const path of paths) expect(path).toMatch(/^\/usr\/local\/[\w./-]+$/);
  }
});

test("an image of a recipe that this checkout does not have is an image without software", () => {
  const imagesDir = mkdtempSync(join(tmpdir(), "holdfast-images-"));
  const id = "streams-0000000000000001";
  mkdirSync(join(imagesDir, id));
  expect(openImage(imagesDir, id)?.software("postgresql", "17")).toBeUndefined();
});

const made = findImage(imagesDirectory(process.env), "trixie");
test.skipIf(made === undefined)("the versions of collation libraries are those in the image", () => {
  const { id = "", root = "" } = made ?? {};
  const manifest = readManifest(imagesDirectory(process.env), id);
  expect(manifest && manifestOf(manifest.suite, manifest).id).toBe(id);
  const { libc = "", ICU = "" } = textLibrariesOf(manifest ?? { packages: [] });
  expect(libc).toMatch(/^2\.\d+$/);
  const files = readdirSync(join(root, "usr/lib"), { recursive: true }).map(String);
  expect(files.some((file) => file.endsWith(`/libicuuc.so.${ICU}`))).toBe(true);
  const program = files.find((file) => file.endsWith("/libc.so.6")) ?? "";
  expect(readFileSync(join(root, "usr/lib", program), "latin1")).toContain(`stable release version ${libc}.`);
});

test("an image without ICU has no version of it, and a Debian revision does not count", () => {
  const packages = (version: string) => partial<ImageManifest["packages"]>([{ name: "libc6", version }]);
  expect(textLibrariesOf({ packages: packages("2.41-12+deb13u1") })).toEqual({ libc: "2.41" });
  expect(textLibrariesOf({ packages: packages("2.41-13") })).toEqual({ libc: "2.41" });
});

test("images are in the cache, which the environment can move", () => {
  expect(imagesDirectory({ HOME: "/home/ada" })).toBe("/home/ada/.cache/holdfast/images");
  expect(imagesDirectory({ HOME: "/home/ada", HOLDFAST_CACHE: "/big" })).toBe("/big/images");
});
