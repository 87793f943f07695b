import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { digestOfFiles, storedBuild } from "./stored-build.ts";

let root: string;
let stored: string;
let builds: number;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-stored-build-"));
  stored = join(root, "stored");
  builds = 0;
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const steps = {
  build(directory: string) {
    builds += 1;
    writeFileSync(join(directory, "output"), `build ${builds}`);
    return Promise.resolve();
  },
  read: (directory: string) => Promise.resolve().then(() => readFileSync(join(directory, "output"), "utf8")),
};

test("the same digest is built once", async () => {
  expect(await storedBuild(stored, "a", steps)).toBe("build 1");
  expect(await storedBuild(stored, "a", steps)).toBe("build 1");
  expect(readdirSync(stored)).toEqual(["a"]);
});

test("the newest builds stay", async () => {
  for (const [at, digest] of ["a", "b", "c"].entries()) {
    await storedBuild(stored, digest, steps, 2);
    utimesSync(join(stored, digest), at + 1, at + 1);
  }
  expect(readdirSync(stored).toSorted()).toEqual(["b", "c"]);
});

test("a failed build leaves nothing, and is repeated", async () => {
  const failing = { ...steps, build: () => Promise.reject(new Error("no space")) };
  await expect(storedBuild(stored, "a", failing)).rejects.toThrow("no space");
  expect(readdirSync(stored)).toEqual([]);
  expect(await storedBuild(stored, "a", steps)).toBe("build 1");
});

test("a directory that cannot be a store has no builds", async () => {
  writeFileSync(stored, "a file");
  expect(await storedBuild(stored, "a", steps)).toBe("build 1");
  expect(await storedBuild(stored, "a", steps)).toBe("build 2");
});

test("a digest changes with each name, content and text", () => {
  mkdirSync(join(root, "src", "inner"), { recursive: true });
  writeFileSync(join(root, "src", "inner", "a.ts"), "1");
  writeFileSync(join(root, "src", "other.md"), "1");
  const digest = () => digestOfFiles(root, ["src/**/*.ts"]);
  const first = digest();
  writeFileSync(join(root, "src", "other.md"), "2");
  expect(digest()).toBe(first);
  expect(digestOfFiles(root, ["src/**/*.ts"], ["v24"])).not.toBe(first);
  writeFileSync(join(root, "src", "inner", "a.ts"), "2");
  const second = digest();
  writeFileSync(join(root, "src", "b.ts"), "");
  expect(new Set([first, second, digest()]).size).toBe(3);
});
