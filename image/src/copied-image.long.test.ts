import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { afterAll, expect, test } from "vitest";
import { manifestPath, readManifest } from "./image-manifest.ts";
import { findImage, imagesDirectory } from "./node-image.ts";

const run = promisify(execFile);
const launcher = join(import.meta.dirname, "..", "..", "bin", "holdfast.js");
const skip = await requireRecipes(import.meta.filename, "kafka");

const hostCache = process.env["HOLDFAST_CACHE"] ?? join(homedir(), ".cache", "holdfast");
const source = imagesDirectory(process.env);
/** The cache of another host, with the same programs of the set-up. */
const cache = mkdtempSync(join(tmpdir(), "holdfast-cache-"));
const imagesDir = imagesDirectory({ HOLDFAST_CACHE: cache });
afterAll(() => rmSync(cache, { recursive: true, force: true }));

/** Runs the launcher without a network, as root or in a user namespace. */
function withoutNetwork(...args: string[]) {
  const user = process.getuid?.() === 0 ? [] : ["--user", "--map-current-user"];
  const env = { ...process.env, HOLDFAST_CACHE: cache };
  return run("unshare", [...user, "--net", process.execPath, launcher, "images", ...args], { env });
}

/** Java's certificate authorities, which its package writes at installation with the time in each entry. */
const keyStore = "/etc/ssl/certs/java/cacerts";

/** Hash of the key store without the times: after tag and alias of an entry are 8 bytes of its time (format JKS). */
function hashOfKeyStore(path: string): string {
  const bytes = readFileSync(path);
  const hash = createHash("sha256");
  const textEnd = (at: number) => at + 2 + bytes.readUInt16BE(at);
  let at = 12;
  for (let entries = bytes.readUInt32BE(8); entries > 0; entries -= 1) {
    const time = textEnd(at + 4);
    const length = textEnd(time + 8);
    const end = length + 4 + bytes.readUInt32BE(length);
    hash.update(bytes.subarray(at, time)).update(bytes.subarray(time + 8, end));
    at = end;
  }
  // A SHA-1 of everything before it.
  expect(bytes.length - at).toBe(20);
  return hash.digest("hex");
}

/** Hash of each program, library and setting, and target of each link, by its path in the image. */
function contentsOf(root: string): Map<string, string> {
  const entries = ["usr", "etc"].flatMap((part) =>
    readdirSync(join(root, part), { recursive: true, withFileTypes: true }),
  );
  const contents = new Map<string, string>();
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(root.length);
    if (entry.isFile()) contents.set(name, createHash("sha256").update(readFileSync(path)).digest("hex"));
    if (entry.isSymbolicLink()) contents.set(name, readlinkSync(path));
  }
  contents.set(keyStore, hashOfKeyStore(join(root, keyStore)));
  return contents;
}

test.skipIf(skip !== undefined)(
  "an image of packages and artifacts that was copied to another host is built there without a network",
  { timeout: 900_000 },
  async () => {
    const image = findImage(source, "kafka");
    const manifest = readManifest(source, image?.id ?? "");
    if (image === undefined || manifest === undefined) throw new Error("the image has no manifest");
    // The steps of docs/operate/hosts.md.
    const files = {
      packages: manifest.packages.map(({ sha256 }) => `${sha256}.deb`),
      artifacts: (manifest.artifacts?.files ?? []).map(({ sha256 }) => sha256),
    };
    expect(files.artifacts.length).toBeGreaterThan(0);
    for (const [directory, names] of Object.entries(files)) {
      mkdirSync(join(imagesDir, directory), { recursive: true });
      for (const name of names) symlinkSync(join(source, directory, name), join(imagesDir, directory, name));
    }
    copyFileSync(manifestPath(source, image.id), manifestPath(imagesDir, image.id));
    for (const name of readdirSync(hostCache).filter((each) => /^(node|pnpm)-/.test(each)))
      symlinkSync(join(hostCache, name), join(cache, name));

    expect((await withoutNetwork("list")).stdout).toContain(`${image.id} (not unpacked)`);
    const { stdout } = await withoutNetwork("remake", image.id);
    expect(stdout.trim()).toBe(join(imagesDir, image.id));
    const [before, after] = [contentsOf(image.root), contentsOf(stdout.trim())];
    expect([...after.keys()].toSorted()).toEqual([...before.keys()].toSorted());
    const differing = [...before].filter(([name, content]) => after.get(name) !== content).map(([name]) => name);
    expect(differing).toEqual([]);
  },
);
