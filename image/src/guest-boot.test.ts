import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { billOfMaterials } from "./bill-of-materials.ts";
import { findGuestBoot } from "./guest-boot.ts";
import { readManifest, writeManifest } from "./image-manifest.ts";
import { imagesDirectory } from "./node-image.ts";
import { fileOf } from "./package-set.ts";

const run = promisify(execFile);
const main = join(import.meta.dirname, "main.ts");
const cache = mkdtempSync(join(tmpdir(), "holdfast-cache-"));
const imagesDir = imagesDirectory({ HOLDFAST_CACHE: cache });
const source = imagesDirectory(process.env);
const newest = findGuestBoot(source);
const manifest = newest && readManifest(source, newest.id);
const why = newest === undefined ? " (skipped: run holdfast images make guest)" : "";

afterAll(() => rmSync(cache, { recursive: true, force: true }));

test.skipIf(manifest === undefined)(
  `a guest kernel is built again from the archive, without a mirror, with the same files${why}`,
  async () => {
    if (newest === undefined || manifest === undefined) throw new Error("it is here");
    mkdirSync(join(imagesDir, "packages"), { recursive: true });
    for (const { sha256 } of manifest.packages)
      symlinkSync(join(source, "packages", fileOf(sha256)), join(imagesDir, "packages", fileOf(sha256)));
    await writeManifest(imagesDir, manifest);
    const user = process.getuid?.() === 0 ? [] : ["--user", "--map-current-user"];
    const env = { ...process.env, HOLDFAST_CACHE: cache };
    const withoutNetwork = ["--net", process.execPath, main, "remake", newest.id];
    const { stdout } = await run("unshare", [...user, ...withoutNetwork], { env });
    const hashOf = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");
    for (const name of ["kernel", "initramfs"] as const)
      expect(hashOf(join(stdout.trim(), name))).toBe(hashOf(newest[name]));
  },
);

test.skipIf(manifest === undefined)(
  `a guest kernel consists of a kernel and a busybox, each with its version${why}`,
  () => {
    const { components, metadata } = billOfMaterials(manifest as NonNullable<typeof manifest>) as {
      components: { name: string; purl: string }[];
      metadata: object;
    };
    expect(metadata).toMatchObject({ component: { name: "holdfast-guest-boot", version: newest?.id } });
    expect(components.map(({ name }) => name)).toEqual(["busybox-static", expect.stringMatching(/^linux-image-6\./)]);
    for (const { name, purl } of components) expect(purl).toContain(`${encodeURIComponent(name)}@`);
  },
);
