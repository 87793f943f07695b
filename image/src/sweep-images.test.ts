import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { manifestOf, writeManifest, setNewestIn } from "./image-manifest.ts";
import { openImageUses } from "./image-uses.ts";
import { setNewest } from "./node-image.ts";
import { newestGuestPath } from "./guest-boot.ts";
import { fileOf, type Package } from "./package-set.ts";
import { sweepImages } from "./sweep-images.ts";

const dayMs = 86_400_000;
const start = Date.now();
let imagesDir: string;
let holder: string;

beforeEach(() => {
  imagesDir = mkdtempSync(join(tmpdir(), "holdfast-images-"));
  holder = mkdtempSync(join(tmpdir(), "holdfast-holder-"));
  mkdirSync(join(imagesDir, "packages"));
});

/** Creates an image of these packages, with its tree. */
async function made(...names: string[]): Promise<string> {
  const packages = names.map(packageOf);
  for (const { sha256 } of packages) writeFileSync(join(imagesDir, "packages", `${sha256}.deb`), "deb");
  const manifest = manifestOf("trixie", { packages, script: "", installed: true });
  await writeManifest(imagesDir, manifest);
  mkdirSync(join(imagesDir, manifest.id, "usr"), { recursive: true });
  return manifest.id;
}

function packageOf(name: string): Package {
  return { name, version: "1", architecture: "all", sha256: `${name}${"0".repeat(60)}`, sizeBytes: 3, control: "" };
}

const sweepAfter = (days: number, options: { dryRun?: boolean } = {}) =>
  sweepImages({ imagesDir, now: start + days * dayMs, ...options });
const has = (id: string) => existsSync(join(imagesDir, id));
const packagesLeft = () => readdirSync(join(imagesDir, "packages")).map((name) => name.replace(/0+\.deb$/, ""));

test("an unused image is removed after some days, and can be built again for longer", async () => {
  const [old, newest] = [await made("a", "b"), await made("b", "c")];
  await setNewest(imagesDir, "trixie", newest);
  expect((await sweepAfter(0)).trees).toEqual([]);
  expect((await sweepAfter(6)).trees).toEqual([]);
  expect((await sweepAfter(8, { dryRun: true })).trees).toEqual([old]);
  expect(has(old)).toBe(true);
  expect((await sweepAfter(8)).trees).toEqual([old]);
  expect([has(old), has(`${old}.json`), has(newest)]).toEqual([false, true, true]);
  expect(packagesLeft()).toEqual(["a", "b", "c"]);
  const last = await sweepAfter(31);
  expect(last).toEqual({ trees: [], manifests: [old], packages: 1, artifacts: 0, archivedBytes: 3 });
  expect(packagesLeft()).toEqual(["b", "c"]);
  expect([has(`${old}.json`), has(`${newest}.json`)]).toEqual([false, true]);
});

test("an image stays until its last holder withdraws its use", async () => {
  const [id, other] = [await made("a"), mkdtempSync(join(tmpdir(), "holdfast-holder-"))];
  const [first, second] = [openImageUses(imagesDir, holder), openImageUses(imagesDir, other)];
  first.add(id);
  second.add(id);
  for (const days of [0, 8]) expect((await sweepAfter(days)).trees).toEqual([]);
  await first.keepOnly(new Set(), start + 8 * dayMs);
  expect((await sweepAfter(16)).trees).toEqual([]);
  await second.keepOnly(new Set([id]), start + 16 * dayMs);
  expect((await sweepAfter(24)).trees).toEqual([]);
  await second.keepOnly(new Set(), start + 24 * dayMs);
  // It is unused only from now on.
  expect((await sweepAfter(24)).trees).toEqual([]);
  expect((await sweepAfter(32)).trees).toEqual([id]);
});

test("a new use is not withdrawn", async () => {
  const id = await made("a");
  const uses = openImageUses(imagesDir, holder);
  uses.add(id);
  await uses.keepOnly(new Set(), Date.now());
  for (const days of [0, 8]) expect((await sweepAfter(days)).trees).toEqual([]);
});

test("a holder with an absent directory counts for a week", async () => {
  const id = await made("a");
  openImageUses(imagesDir, holder).add(id);
  rmSync(holder, { recursive: true });
  for (const days of [0, 6]) expect((await sweepAfter(days)).trees).toEqual([]);
  for (const days of [8, 14]) expect((await sweepAfter(days)).trees).toEqual([]);
  expect((await sweepAfter(16)).trees).toEqual([id]);
});

test("a use retains the manifest and packages of an absent tree", async () => {
  const id = await made("a");
  openImageUses(imagesDir, holder).add(id);
  rmSync(join(imagesDir, id), { recursive: true });
  for (const days of [0, 60]) expect((await sweepAfter(days)).manifests).toEqual([]);
  expect(packagesLeft()).toEqual(["a"]);
});

test("the newest image of an abandoned recipe is removed a month after its last sweep", async () => {
  const [own, other] = [await made("a"), await made("b")];
  await setNewest(imagesDir, "trixie", own);
  writeFileSync(join(imagesDir, "newest", "trixie-0123456789abcdef"), `${other}\n`);
  for (const days of [0, 29]) expect((await sweepAfter(days)).trees).toEqual([]);
  for (const days of [31, 39]) await sweepAfter(days);
  expect([has(own), has(other)]).toEqual([true, false]);
});

test("remains of killed builds and sweeps are removed after a day, and newer ones stay", async () => {
  const left = ["trixie-0000000000000001.partial", "trixie-0000000000000002.going", "trixie-0000000000000003.1.making"];
  for (const name of left) mkdirSync(join(imagesDir, name));
  mkdirSync(join(imagesDir, "packages", "fetching-1"));
  writeFileSync(join(imagesDir, "packages", `${"f".repeat(64)}.deb`), "of no image");
  await sweepAfter(0);
  expect(left.every(has)).toBe(true);
  expect(packagesLeft()).toHaveLength(2);
  await sweepAfter(2);
  expect(left.some(has)).toBe(false);
  expect(packagesLeft()).toEqual([]);
});

test("a used guest kernel stays, and its packages as long as it can be built again", async () => {
  const guest = async (name: string) => {
    const packages = [packageOf(name)];
    writeFileSync(join(imagesDir, "packages", fileOf(packages[0]?.sha256 ?? "")), "deb");
    const manifest = manifestOf("trixie", { packages, script: "", installed: false }, "guest");
    await writeManifest(imagesDir, manifest);
    mkdirSync(join(imagesDir, manifest.id));
    return manifest.id;
  };
  const [old, newest] = [await guest("linux-6.12.1"), await guest("linux-6.12.2")];
  await setNewestIn(newestGuestPath(imagesDir), newest);
  const uses = openImageUses(imagesDir, holder);
  uses.add(old);
  for (const days of [0, 8, 40]) expect(await sweepAfter(days)).toMatchObject({ trees: [], manifests: [] });
  await uses.keepOnly(new Set(), start + 40 * dayMs);
  for (const days of [40, 48]) await sweepAfter(days);
  expect([has(old), has(newest)]).toEqual([false, true]);
  expect(packagesLeft()).toEqual(["linux-6.12.1", "linux-6.12.2"]);
  expect((await sweepAfter(71)).manifests).toEqual([old]);
  expect(packagesLeft()).toEqual(["linux-6.12.2"]);
});

test("an artifact stays as long as an image can be built again with it", async () => {
  mkdirSync(join(imagesDir, "artifacts"));
  const artifact = (sha256: string) => {
    writeFileSync(join(imagesDir, "artifacts", sha256), "jar");
    const [kind, form] = ["maven", "file"] as const;
    return { kind, form, name: "a:b", version: "1", sha256, sizeBytes: 3, path: `/usr/local/lib/${sha256}` };
  };
  const imageOf = async (...files: ReturnType<typeof artifact>[]) => {
    const artifacts = { files, script: "" };
    const manifest = manifestOf("trixie", { packages: [], script: "", installed: true, artifacts }, "streams");
    await writeManifest(imagesDir, manifest);
    mkdirSync(join(imagesDir, manifest.id));
    return manifest.id;
  };
  const [shared, removed] = [artifact("shared"), artifact("removed")];
  const [old, used] = [await imageOf(shared, removed), await imageOf(shared)];
  artifact("of-no-image");
  openImageUses(imagesDir, holder).add(used);
  const left = () => readdirSync(join(imagesDir, "artifacts")).toSorted();
  await sweepAfter(0);
  expect(left()).toEqual(["of-no-image", "removed", "shared"]);
  expect(await sweepAfter(8)).toMatchObject({ trees: [old], manifests: [], artifacts: 1, archivedBytes: 3 });
  expect(left()).toEqual(["removed", "shared"]);
  expect(await sweepAfter(31)).toMatchObject({ trees: [], manifests: [old], artifacts: 1, archivedBytes: 3 });
  expect([left(), has(used)]).toEqual([["shared"], true]);
});

test("tools and the programs that they built are removed a month after their last use", async () => {
  const names = [`tools-sid-${"0".repeat(16)}`, `program-lib-${"0".repeat(16)}`];
  for (const name of names) mkdirSync(join(imagesDir, name));
  mkdirSync(join(imagesDir, "judges-sid"));
  expect((await sweepAfter(29)).trees).toEqual([]);
  expect((await sweepAfter(31, { dryRun: true })).trees.toSorted()).toEqual(names.toSorted());
  await sweepAfter(31);
  expect([...names, "judges-sid"].map(has)).toEqual([false, false, true]);
});
