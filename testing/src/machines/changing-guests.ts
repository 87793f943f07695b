import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ensureGuestBoot, newestGuestPath } from "@holdfast/image/guest-boot.ts";
import { type ImageManifest, manifestPath, setNewestIn } from "@holdfast/image/image-manifest.ts";
import { cacheDirectory, findImage, imagesDirectory, newestPath } from "@holdfast/image/node-image.ts";

/** A separate cache with the real node image; a test chooses its newest kernel of virtual machines. */
export interface ChangingGuests {
  /** Directory for HOLDFAST_CACHE. */
  readonly cache: string;
  /** Id of the kernel that is the newest at first. */
  readonly first: string;
  /** Id of a kernel with the same files, whose manifest names Linux 98.1. */
  readonly valid: string;
  /** Id of a kernel whose file is not a kernel, so that QEMU does not start. Its manifest names Linux 99.1. */
  readonly broken: string;
  /** Makes this kernel the default. */
  choose(id: string): Promise<void>;
  close(): void;
}

/** Builds a missing image first (a minute). Throws without a node image. */
export async function createChangingGuests(): Promise<ChangingGuests> {
  const source = imagesDirectory(process.env);
  const [image, boot] = [findImage(source, "trixie"), await ensureGuestBoot({ imagesDir: source })];
  if (image === undefined) throw new Error("no image: run ./bin/holdfast.js images make");
  const cache = mkdtempSync(join(cacheDirectory(process.env), "changing-guests-"));
  const imagesDir = imagesDirectory({ HOLDFAST_CACHE: cache });
  mkdirSync(dirname(newestPath(imagesDir, "trixie")), { recursive: true });
  symlinkSync(image.root, join(imagesDir, image.id));
  symlinkSync(manifestPath(source, image.id), manifestPath(imagesDir, image.id));
  writeFileSync(newestPath(imagesDir, "trixie"), image.id);

  const manifest = JSON.parse(readFileSync(manifestPath(source, boot.id), "utf8")) as ImageManifest;
  const versioned = (version: string) =>
    manifest.packages.map((each) => (each.name.startsWith("linux-image-") ? { ...each, version } : each));
  function add(id: string, change: Partial<ImageManifest> = {}): string {
    writeFileSync(manifestPath(imagesDir, id), JSON.stringify({ ...manifest, ...change, id }));
    mkdirSync(join(imagesDir, id));
    symlinkSync(boot.initramfs, join(imagesDir, id, "initramfs"));
    return join(imagesDir, id, "kernel");
  }
  const [first, valid, broken] = ["a", "b", "c"].map((digit) => `guest-${digit.repeat(16)}`) as [
    string,
    string,
    string,
  ];
  symlinkSync(boot.kernel, add(first));
  symlinkSync(boot.kernel, add(valid, { packages: versioned("98.1-1") }));
  writeFileSync(add(broken, { packages: versioned("99.1-1") }), "no kernel\n");
  const choose = (id: string) => setNewestIn(newestGuestPath(imagesDir), id);
  await choose(first);
  return { cache, first, valid, broken, choose, close: () => rmSync(cache, { recursive: true, force: true }) };
}
