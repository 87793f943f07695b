import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { build } from "./console-bundle.ts";

const checkout = join(import.meta.dirname, "../..");
const root = mkdtempSync(join(tmpdir(), "holdfast-console-bundle-test-"));
const builds = () => readdirSync(join(root, "console", "dist"));
beforeAll(() => {
  for (const name of ["console/src", "console/bundle.ts", "console/package.json", "sdk/src", "pnpm-lock.yaml"])
    cpSync(join(checkout, name), join(root, name), { recursive: true });
  mkdirSync(join(root, "console"), { recursive: true });
  symlinkSync(join(checkout, "console", "node_modules"), join(root, "console", "node_modules"));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

test("a build of the same code is read again, and a change of the code is built", async () => {
  const [first, concurrent] = await Promise.all([build(root), build(root)]);
  expect(first.page.plain).toEqual(concurrent.page.plain);
  const [name = ""] = builds();
  expect(builds()).toEqual([name]);
  // A file that only this build has shows that it was read.
  writeFileSync(join(root, "console", "dist", name, "mark.js"), "");
  utimesSync(join(root, "console", "src", "main.tsx"), new Date(), new Date());
  expect((await build(root)).assets.has("mark.js")).toBe(true);
  writeFileSync(join(root, "console", "src", "style", "pages.css"), ".changed { color: red; }");
  const changed = await build(root);
  expect(changed.assets.has("mark.js")).toBe(false);
  expect(changed.page.plain).not.toEqual(first.page.plain);
  expect(builds()).toHaveLength(1);
  expect(builds()).not.toContain(name);
});

test("the first load is small, and every file has its compressed form", async () => {
  const { page, assets } = await build(checkout);
  const text = page.plain.toString();
  const loaded = [...assets].filter(([name]) => text.includes(name));
  expect(loaded.length).toBeLessThanOrEqual(4);
  const bytes = loaded.reduce((sum, [, { brotli }]) => sum + brotli.length, page.brotli.length);
  expect(bytes).toBeLessThanOrEqual(70_000);
  for (const [name, { brotli }] of assets) expect(brotli.length, name).toBeLessThanOrEqual(140_000);
});
