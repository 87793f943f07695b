import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { largestTreeBytes, manifestOf, readManifest, writeManifest } from "./image-manifest.ts";
import { canRemake } from "./make-image.ts";
import { findImage, imagesDirectory } from "./node-image.ts";

const run = promisify(execFile);
const main = join(import.meta.dirname, "main.ts");
const cache = mkdtempSync(join(tmpdir(), "holdfast-cache-"));
const imagesDir = imagesDirectory({ HOLDFAST_CACHE: cache });
const source = imagesDirectory(process.env);
const newest = findImage(source, "trixie");
const manifest = newest && readManifest(source, newest.id);
/** Enough for a tree, which is built in a second. */
const few = [
  "base-passwd",
  "libdebconfclient0",
  "libselinux1",
  "libpcre2-8-0",
  "tini",
  "libc6",
  "libgcc-s1",
  "gcc-14-base",
  "libatomic1",
];

afterAll(() => rmSync(cache, { recursive: true, force: true }));

/** Runs the program without a network, as root or in a user namespace. */
function withoutNetwork(...args: string[]) {
  const user = process.getuid?.() === 0 ? [] : ["--user", "--map-current-user"];
  const env = { ...process.env, HOLDFAST_CACHE: cache };
  return run("unshare", [...user, "--net", process.execPath, main, ...args], { env });
}

/** Hash of each file and target of each link of the packages, without devices. */
function contentsOf(root: string): Map<string, string> {
  const files = new Map<string, string>();
  const entries = ["usr", "etc"].flatMap((part) =>
    readdirSync(join(root, part), { recursive: true, withFileTypes: true }),
  );
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) files.set(path, createHash("sha256").update(readFileSync(path)).digest("hex"));
    if (entry.isSymbolicLink()) files.set(path, readlinkSync(path));
  }
  return files;
}

test.skipIf(manifest === undefined)(
  "an image is built again from the archive, without a mirror, with the same files",
  { timeout: 300_000 },
  async () => {
    const packages = manifest?.packages.filter(({ name }) => few.includes(name)) ?? [];
    expect(packages).toHaveLength(few.length);
    mkdirSync(join(imagesDir, "packages"), { recursive: true });
    for (const { sha256 } of packages)
      symlinkSync(join(source, "packages", `${sha256}.deb`), join(imagesDir, "packages", `${sha256}.deb`));
    const manifestOfFew = manifestOf("trixie", { packages, script: manifest?.script ?? "", installed: false });
    await writeManifest(imagesDir, manifestOfFew);

    const first = (await withoutNetwork("remake", manifestOfFew.id)).stdout.trim();
    expect(first).toBe(join(imagesDir, manifestOfFew.id));
    const contents = contentsOf(first);
    expect([...contents.keys()]).toContain(join(first, "usr/bin/tini"));
    rmSync(first, { recursive: true });
    await withoutNetwork("remake", manifestOfFew.id);
    expect(contentsOf(first)).toEqual(contents);
    expect(readdirSync(imagesDir).filter((name) => /partial|making/.test(name))).toEqual([]);
    expect(readManifest(imagesDir, manifestOfFew.id)?.made?.treeBytes).toBeGreaterThan(1e6);
    expect(await largestTreeBytes(imagesDir)).toBe(readManifest(imagesDir, manifestOfFew.id)?.made?.treeBytes);
    expect((await withoutNetwork("list")).stdout).toContain(`${few.length} packages`);
  },
);

test.skipIf(manifest === undefined)(
  "an image with a lost package cannot be built again, and the error names the package",
  async () => {
    const packages = manifest?.packages.filter(({ name }) => name === "xfsprogs") ?? [];
    const manifestOfFew = manifestOf("trixie", { packages, script: "", installed: false });
    await writeManifest(imagesDir, manifestOfFew);
    expect(await canRemake(imagesDir, manifestOfFew.id)).toBe(false);
    await expect(withoutNetwork("remake", manifestOfFew.id)).rejects.toThrow(/the archive has no xfsprogs/);
    await expect(withoutNetwork("remake", "trixie-00000000000000ff")).rejects.toThrow(
      /there is no manifest of the image/,
    );
  },
);
