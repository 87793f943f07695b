import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { ImageImpossible } from "./image-impossible.ts";
import { writeWhole } from "./image-manifest.ts";
import { openPackageSource, type ResolvedPackage } from "./package-source.ts";

const run = promisify(execFile);

/** What a virtual machine boots from before it has its node image: the same for every image. */
export interface GuestBoot {
  /** `guest-<digest>`: kernel, initramfs and what makes it decide the name. */
  readonly id: string;
  /** Paths on this host. */
  readonly kernel: string;
  readonly initramfs: string;
}

const suite = "trixie";
const wanted = ["linux-image-cloud-amd64", "busybox-static"];
/** Of all that the kernel asks for, these two are unpacked; nothing of them is installed. */
const kept = /^(linux-image-[0-9].*-cloud-amd64|busybox-static)$/;
const sources = join(import.meta.dirname, "..", "guest");
const makeGuest = join(sources, "make-guest.sh");

const directoryOf = (imagesDir: string) => join(imagesDir, "guests");

/** The newest that is made with these scripts; undefined when there is none. */
function findGuestBoot(imagesDir: string): GuestBoot | undefined {
  const newest = join(directoryOf(imagesDir), `newest-${scriptsDigest()}`);
  if (!existsSync(newest)) return undefined;
  return openGuestBoot(imagesDir, readFileSync(newest, "utf8").trim());
}

/** The newest, made first when there is none (half a minute). Throws ImageImpossible. */
export async function ensureGuestBoot(imagesDir: string, signal?: AbortSignal): Promise<GuestBoot> {
  return findGuestBoot(imagesDir) ?? (await makeGuestBoot(imagesDir, signal));
}

/** Makes one of the kernel that the mirror has now. Machines have it from their next start on. */
async function makeGuestBoot(imagesDir: string, signal?: AbortSignal): Promise<GuestBoot> {
  const source = await openPackageSource(join(imagesDir, "packages"));
  const work = join(directoryOf(imagesDir), `${process.pid}.making`);
  try {
    const packages = (await source.resolve(suite, wanted, signal)).filter(({ name }) => kept.test(name));
    if (packages.length !== wanted.length)
      throw new ImageImpossible(`${suite} has no ${wanted.join(" or ")} that virtual machines could boot from`);
    const id = `guest-${digestOf(packages)}`;
    if (openGuestBoot(imagesDir, id) === undefined) {
      await rm(work, { recursive: true, force: true });
      await mkdir(join(work, "packages"), { recursive: true });
      await mkdir(join(work, "made"));
      await unpack(packages, work, source, signal);
      await run(makeGuest, [join(work, "packages"), join(work, "made")], { ...(signal && { signal }) });
      const names = packages.map(({ name, version }) => `${name} ${version}\n`);
      await writeFile(join(work, "made", "packages"), names.join(""));
      // Another one that made the same at the same time has what we have.
      await rename(join(work, "made"), join(directoryOf(imagesDir), id)).catch(() => undefined);
    }
    await writeWhole(join(directoryOf(imagesDir), `newest-${scriptsDigest()}`), `${id}\n`);
    const made = openGuestBoot(imagesDir, id);
    if (made === undefined) throw new ImageImpossible(`${makeGuest} ended well but left no kernel`);
    return made;
  } finally {
    await rm(work, { recursive: true, force: true });
    await source.close();
  }
}

async function unpack(
  packages: readonly ResolvedPackage[],
  work: string,
  source: Awaited<ReturnType<typeof openPackageSource>>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const files = packages.map(({ uri, sha256 }) => ({ uri, sha256, path: join(work, `${sha256}.deb`) }));
  await source.fetch(files, signal);
  for (const { path } of files) await run("dpkg-deb", ["--extract", path, join(work, "packages")]);
}

function openGuestBoot(imagesDir: string, id: string): GuestBoot | undefined {
  const directory = join(directoryOf(imagesDir), id);
  if (!existsSync(directory)) return undefined;
  return { id, kernel: join(directory, "kernel"), initramfs: join(directory, "initramfs") };
}

function digestOf(packages: readonly ResolvedPackage[]): string {
  const lines = packages.map(({ name, version, sha256 }) => `${name} ${version} ${sha256}`).sort();
  return hashed(`${lines.join("\n")}\n${scriptsDigest()}`);
}

function scriptsDigest(): string {
  return hashed(
    readdirSync(sources)
      .sort()
      .map((name) => readFileSync(join(sources, name), "utf8"))
      .join("\n"),
  );
}

function hashed(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
