import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { installedPaths } from "./installed-paths.ts";
import { addRelease, currentRelease, releaseIdOf, removeOldReleases, useRelease } from "./releases.ts";

let root: string;
let checkout: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-releases-"));
  checkout = join(root, "checkout");
  mkdirSync(join(checkout, "bin"), { recursive: true });
  mkdirSync(join(checkout, "node_modules"));
  writeFileSync(join(checkout, "package.json"), '{"version": "0.1.0"}');
  writeFileSync(join(checkout, "bin", "a.js"), "1");
  writeFileSync(join(checkout, ".git"), "gitdir: elsewhere");
});
afterEach(() => rmSync(root, { recursive: true }));

const prepared = async (directory: string) => writeFileSync(join(directory, "prepared"), "");

it("names a release by its version and code, and not by its packages", () => {
  const id = releaseIdOf(checkout);
  expect(id).toMatch(/^0\.1\.0-[0-9a-f]{12}$/);
  writeFileSync(join(checkout, "node_modules", "x"), "");
  expect(releaseIdOf(checkout)).toBe(id);
  writeFileSync(join(checkout, "bin", "a.js"), "2");
  expect(releaseIdOf(checkout)).not.toBe(id);
});

it("adds the code once, without packages and git", async () => {
  const paths = installedPaths(root);
  const id = await addRelease(paths, checkout, prepared);
  expect(readdirSync(join(paths.releases, id)).toSorted()).toEqual(["bin", "package.json", "prepared"]);
  await addRelease(paths, checkout, async () => {
    throw new Error("prepared again");
  });
});

it("leaves no release behind whose packages could not be installed", async () => {
  const paths = installedPaths(root);
  const failed = addRelease(paths, checkout, async () => {
    throw new Error("no network");
  });
  await expect(failed).rejects.toThrow("no network");
  const id = await addRelease(paths, checkout, prepared);
  expect(readdirSync(paths.releases)).toEqual([id]);
});

it("switches the current release", async () => {
  const paths = installedPaths(root);
  expect(currentRelease(paths)).toBeUndefined();
  const first = await addRelease(paths, checkout, prepared);
  useRelease(paths, first);
  useRelease(paths, "0.2.0-x");
  expect(currentRelease(paths)).toBe("0.2.0-x");
  useRelease(paths, first);
  expect(existsSync(join(paths.current, "bin", "a.js"))).toBe(true);
});

it.skipIf(process.getuid?.() !== 0)("removes old releases, but none that a machine has mounted", async () => {
  const paths = installedPaths(root);
  for (const id of ["0.1.0-a", "0.1.0-b", "0.1.0-c"]) mkdirSync(join(paths.releases, id), { recursive: true });
  const target = join(root, "machine");
  mkdirSync(target);
  execFileSync("mount", ["--bind", join(paths.releases, "0.1.0-b"), target]);
  try {
    expect(removeOldReleases(paths, ["0.1.0-c"])).toEqual(["0.1.0-a"]);
    expect(readdirSync(paths.releases)).toEqual(["0.1.0-b", "0.1.0-c"]);
  } finally {
    execFileSync("umount", [target]);
  }
});
