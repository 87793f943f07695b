import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { ImageImpossible } from "./image-impossible.ts";
import { manifestOf, recordBuild, readManifest, writeManifest, newestIn, setNewestIn } from "./image-manifest.ts";
import { openPackageArchive } from "./package-archive.ts";
import { upstreamVersion } from "./package-set.ts";
import { openPackageSource } from "./package-source.ts";

/** A guest kernel: kernel and initramfs of a virtual machine, which mount the node image. One serves every image. */
export interface GuestBoot {
  /** `guest-<digest>`: the digest of packages and scripts, which determine kernel and initramfs. */
  readonly id: string;
  /** Paths on this host. */
  readonly kernel: string;
  readonly initramfs: string;
}

export interface MakeGuestOptions {
  readonly imagesDir: string;
  readonly signal?: AbortSignal;
}

const suite = "trixie";
const kernelPackage = /^linux-image-[0-9].*-cloud-amd64$/;
const packageNames = ["linux-image-cloud-amd64", "busybox-static"];
/** The only two of the kernel's dependencies that are unpacked; nothing is installed. */
const isUnpacked = (name: string) => kernelPackage.test(name) || name === "busybox-static";
const sources = join(import.meta.dirname, "..", "guest");

/** True for the id of a guest kernel, as opposed to a node image. */
export function isGuestBoot(id: string): boolean {
  return /^guest-[0-9a-f]{16}$/.test(id);
}

/** Pointer file to the newest guest kernel, for all checkouts with the same scripts. */
export function newestGuestPath(imagesDir: string): string {
  return join(imagesDir, "newest", manifestOf(suite, { packages: [], script: script(), installed: false }, "guest").id);
}

/** Opens a guest kernel; undefined if it is not on this host. */
export function openGuestBoot(imagesDir: string, id: string): GuestBoot | undefined {
  const directory = join(imagesDir, id);
  if (!isGuestBoot(id) || !existsSync(directory)) return undefined;
  return { id, kernel: join(directory, "kernel"), initramfs: join(directory, "initramfs") };
}

/** Version of Linux, such as `6.12.48`; undefined if the manifest is not on this host. */
export function linuxVersionIn(imagesDir: string, id: string): string | undefined {
  const kernel = readManifest(imagesDir, id)?.packages.find(({ name }) => kernelPackage.test(name));
  return kernel && upstreamVersion(kernel.version);
}

/** The newest guest kernel; undefined if it is not on this host. */
export function findGuestBoot(imagesDir: string): GuestBoot | undefined {
  const id = newestIn(newestGuestPath(imagesDir));
  return id === undefined ? undefined : openGuestBoot(imagesDir, id);
}

/** The newest guest kernel, built first if there is none (a minute). Throws ImageImpossible. */
export async function ensureGuestBoot(options: MakeGuestOptions): Promise<GuestBoot> {
  const { imagesDir } = options;
  const found = findGuestBoot(imagesDir);
  if (found !== undefined) return found;
  const id = newestIn(newestGuestPath(imagesDir));
  const packages = id === undefined ? undefined : readManifest(imagesDir, id)?.packages;
  const isArchived = packages !== undefined && (await openPackageArchive(imagesDir).missing(packages)).length === 0;
  return id !== undefined && isArchived ? remakeGuestBoot(id, options) : makeNewestGuestBoot(options);
}

/**
 * Builds a guest kernel from the mirror's current kernel package. Existing machines retain their kernel. Throws
 * ImageImpossible.
 */
export async function makeNewestGuestBoot(options: MakeGuestOptions): Promise<GuestBoot> {
  const { imagesDir, signal } = options;
  const source = await openPackageSource(join(imagesDir, "packages"));
  try {
    const resolved = (await source.resolve({ suite, names: packageNames }, signal)).filter(({ name }) =>
      isUnpacked(name),
    );
    if (resolved.length !== packageNames.length)
      throw new ImageImpossible(`${suite} has no ${packageNames.join(" or ")} that virtual machines could boot from`);
    const packages = resolved.map(({ uri: _uri, ...each }) => each);
    const manifest = manifestOf(suite, { packages, script: script(), installed: false }, "guest");
    // Written first: packages without a manifest would be removed by a sweep.
    if (readManifest(imagesDir, manifest.id) === undefined) await writeManifest(imagesDir, manifest);
    await openPackageArchive(imagesDir).add(resolved, source, signal);
    const boot = await remakeGuestBoot(manifest.id, options);
    await setNewestIn(newestGuestPath(imagesDir), boot.id);
    return boot;
  } finally {
    await source.close();
  }
}

/** Builds an absent guest kernel from its manifest and the archive, without a network. Throws ImageImpossible. */
export async function remakeGuestBoot(id: string, { imagesDir, signal }: MakeGuestOptions): Promise<GuestBoot> {
  const found = openGuestBoot(imagesDir, id);
  if (found !== undefined) return found;
  const manifest = readManifest(imagesDir, id);
  if (manifest === undefined) throw new ImageImpossible(`there is no manifest of the guest kernel ${id}`);
  const work = join(imagesDir, `${id}.${randomUUID()}.making`);
  const [packages, made, makeGuest] = [join(work, "packages"), join(work, "made"), join(work, "make-guest.sh")];
  const startedAt = performance.now();
  try {
    await rm(work, { recursive: true, force: true });
    for (const directory of [packages, made]) await mkdir(directory, { recursive: true });
    await openPackageArchive(imagesDir).unpack(manifest.packages, packages, signal);
    await writeFile(makeGuest, manifest.script, { mode: 0o755 });
    await runProgram(makeGuest, [packages, made], { ...(signal && { signal }) });
    // A concurrent build of the same id has the same contents.
    await rename(made, join(imagesDir, id)).catch(() => undefined);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  const boot = openGuestBoot(imagesDir, id);
  if (boot === undefined) throw new ImageImpossible(`the script of ${id} succeeded but created no kernel`);
  await recordBuild(imagesDir, manifest, join(imagesDir, id), Math.round(performance.now() - startedAt));
  return boot;
}

/** The build script, followed by the init script. */
function script(): string {
  return ["make-guest.sh", "init.sh"].map((name) => readFileSync(join(sources, name), "utf8")).join("");
}
