import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { ImageImpossible } from "./image-impossible.ts";
import { manifestOf, noteMade, readManifest, writeManifest } from "./image-manifest.ts";
import { newestIn, setNewestIn } from "./newest-pointer.ts";
import { openPackageArchive } from "./package-archive.ts";
import { upstreamVersion } from "./package-set.ts";
import { openPackageSource } from "./package-source.ts";

/** What a virtual machine boots from before it has its node image: the same for every image. */
export interface GuestBoot {
  /** `guest-<digest>`: packages, scripts and so kernel and initramfs decide the name. */
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
const wanted = ["linux-image-cloud-amd64", "busybox-static"];
/** Of all that the kernel asks for, these two are unpacked; nothing of them is installed. */
const isUnpacked = (name: string) => kernelPackage.test(name) || name === "busybox-static";
const sources = join(import.meta.dirname, "..", "guest");

/** Is it the id of one of these, and not of a node image? */
export function isGuestBoot(id: string): boolean {
  return /^guest-[0-9a-f]{16}$/.test(id);
}

/** Where it stands which one is the newest, for all checkouts whose scripts are the same as this one's. */
export function newestGuestPath(imagesDir: string): string {
  return join(imagesDir, "newest", manifestOf(suite, { packages: [], script: script(), installed: false }, "guest").id);
}

/** Undefined when it is not here. */
export function openGuestBoot(imagesDir: string, id: string): GuestBoot | undefined {
  const directory = join(imagesDir, id);
  if (!isGuestBoot(id) || !existsSync(directory)) return undefined;
  return { id, kernel: join(directory, "kernel"), initramfs: join(directory, "initramfs") };
}

/** Version of its Linux, such as `6.12.48`; undefined where its manifest is not here. */
export function linuxVersionIn(imagesDir: string, id: string): string | undefined {
  const kernel = readManifest(imagesDir, id)?.packages.find(({ name }) => kernelPackage.test(name));
  return kernel && upstreamVersion(kernel.version);
}

/** The newest, or undefined when it is not here. */
export function findGuestBoot(imagesDir: string): GuestBoot | undefined {
  const id = newestIn(newestGuestPath(imagesDir));
  return id === undefined ? undefined : openGuestBoot(imagesDir, id);
}

/** The newest, made first when there is none (a minute). Throws ImageImpossible. */
export async function ensureGuestBoot(options: MakeGuestOptions): Promise<GuestBoot> {
  const { imagesDir } = options;
  const found = findGuestBoot(imagesDir);
  if (found !== undefined) return found;
  const id = newestIn(newestGuestPath(imagesDir));
  const packages = id === undefined ? undefined : readManifest(imagesDir, id)?.packages;
  const isKept = packages !== undefined && (await openPackageArchive(imagesDir).missing(packages)).length === 0;
  return id !== undefined && isKept ? remakeGuestBoot(id, options) : makeNewestGuestBoot(options);
}

/** Makes one of the kernel that the mirror has now. Machines that are there keep theirs. Throws ImageImpossible. */
export async function makeNewestGuestBoot(options: MakeGuestOptions): Promise<GuestBoot> {
  const { imagesDir, signal } = options;
  const source = await openPackageSource(join(imagesDir, "packages"));
  try {
    const resolved = (await source.resolve({ suite, names: wanted }, signal)).filter(({ name }) => isUnpacked(name));
    if (resolved.length !== wanted.length)
      throw new ImageImpossible(`${suite} has no ${wanted.join(" or ")} that virtual machines could boot from`);
    const packages = resolved.map(({ uri: _uri, ...each }) => each);
    const manifest = manifestOf(suite, { packages, script: script(), installed: false }, "guest");
    // First: what is in the archive is in somebody's manifest, so that no sweep takes it for left over.
    if (readManifest(imagesDir, manifest.id) === undefined) await writeManifest(imagesDir, manifest);
    await openPackageArchive(imagesDir).add(resolved, source, signal);
    const made = await remakeGuestBoot(manifest.id, options);
    await setNewestIn(newestGuestPath(imagesDir), made.id);
    return made;
  } finally {
    await source.close();
  }
}

/** Makes one out of its manifest and the archive alone, when it is not there. Throws ImageImpossible. */
export async function remakeGuestBoot(id: string, { imagesDir, signal }: MakeGuestOptions): Promise<GuestBoot> {
  const found = openGuestBoot(imagesDir, id);
  if (found !== undefined) return found;
  const manifest = readManifest(imagesDir, id);
  if (manifest === undefined)
    throw new ImageImpossible(`nothing is known of what virtual machines booted from as ${id}`);
  const work = join(imagesDir, `${id}.${randomUUID()}.making`);
  const [packages, made, makeGuest] = [join(work, "packages"), join(work, "made"), join(work, "make-guest.sh")];
  const startedAt = performance.now();
  try {
    await rm(work, { recursive: true, force: true });
    for (const directory of [packages, made]) await mkdir(directory, { recursive: true });
    await openPackageArchive(imagesDir).unpack(manifest.packages, packages, signal);
    await writeFile(makeGuest, manifest.script, { mode: 0o755 });
    await runProgram(makeGuest, [packages, made], { ...(signal && { signal }) });
    // Another one that made the same at the same time has what we have.
    await rename(made, join(imagesDir, id)).catch(() => undefined);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  const boot = openGuestBoot(imagesDir, id);
  if (boot === undefined) throw new ImageImpossible(`the script of ${id} ended well but left no kernel`);
  await noteMade(imagesDir, manifest, join(imagesDir, id), Math.round(performance.now() - startedAt));
  return boot;
}

/** What makes it, and behind that the init that it is to have. */
function script(): string {
  return ["make-guest.sh", "init.sh"].map((name) => readFileSync(join(sources, name), "utf8")).join("");
}
