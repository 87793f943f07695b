import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import type { Suite } from "./catalog.ts";
import { packagesOf, recipes } from "./catalog.ts";
import { ImageImpossible } from "./image-impossible.ts";
import { type ImageManifest, manifestOf, recordBuild, readManifest, writeManifest } from "./image-manifest.ts";
import type { NodeImage } from "./node-image.ts";
import { findImage, makeImageScript, newestId, openImage, setNewest } from "./node-image.ts";
import { openPackageArchive } from "./package-archive.ts";
import { debianMirrors, openPackageSource, transportOptions } from "./package-source.ts";

export interface Progress {
  /** Called with a line before each long step. */
  progress(line: string): void;
  readonly signal?: AbortSignal;
}

export interface MakeImageOptions extends Progress {
  readonly imagesDir: string;
  readonly suite: Suite;
}

/** The suite's newest image, built first if there is none (half a minute). Safe for concurrent processes. */
export async function ensureImage(options: MakeImageOptions): Promise<NodeImage> {
  const { imagesDir, suite } = options;
  const found = findImage(imagesDir, suite);
  if (found !== undefined) return found;
  const id = newestId(imagesDir, suite);
  if (id !== undefined && (await canRemake(imagesDir, id))) return remakeImage(imagesDir, id, options);
  return makeNewest(options);
}

/**
 * Builds an image from the mirror's current packages and makes it the newest; does nothing if it is already. Machines
 * keep their image.
 */
export async function makeNewest(options: MakeImageOptions): Promise<NodeImage> {
  const { imagesDir, suite, signal, progress } = options;
  await ensureTool(options);
  progress(`making an image from Debian ${suite} (about half a minute)`);
  const source = await openPackageSource(join(imagesDir, "packages"));
  try {
    const besideSuite = recipes[suite].beside?.suite;
    const resolved = await source.resolve({ suite, names: packagesOf(suite), besideSuite }, signal);
    const packages = resolved.map(({ uri: _uri, ...each }) => each);
    const script = readFileSync(makeImageScript, "utf8");
    const manifest = manifestOf(suite, { packages, script, installed: process.getuid?.() === 0 });
    // Written first: packages without a manifest would be removed by a sweep.
    if (readManifest(imagesDir, manifest.id) === undefined) await writeManifest(imagesDir, manifest);
    progress(`fetching the image's ${packages.length} packages`);
    await openPackageArchive(imagesDir).add(resolved, source, signal);
    const image = await remakeImage(imagesDir, manifest.id, options);
    await setNewest(imagesDir, suite, image.id);
    return image;
  } finally {
    await source.close();
  }
}

/** True if its manifest and all its packages are on this host. */
export async function canRemake(imagesDir: string, id: string): Promise<boolean> {
  const manifest = readManifest(imagesDir, id);
  if (manifest === undefined) return false;
  return (await openPackageArchive(imagesDir).missing(manifest.packages)).length === 0;
}

/**
 * Builds an image from its manifest and the archive alone, if its tree is absent. The manifest includes the script:
 * equal ids have equal contents. Throws ImageImpossible.
 */
export async function remakeImage(imagesDir: string, id: string, options: Progress): Promise<NodeImage> {
  const found = openImage(imagesDir, id);
  if (found !== undefined) return found;
  const manifest = readManifest(imagesDir, id);
  if (manifest === undefined) throw new ImageImpossible(`there is no manifest of the image ${id}`);
  if (manifest.installed && process.getuid?.() !== 0)
    throw new ImageImpossible(`the image ${id} was built as root, and can only be built again as root`);
  await ensureTool(options);
  const work = join(imagesDir, `${id}.${randomUUID()}.making`);
  const startedAt = performance.now();
  try {
    await rm(work, { recursive: true, force: true });
    const source = await openPackageArchive(imagesDir).writeRepository(
      manifest.packages,
      manifest.suite,
      join(work, "repository"),
    );
    const script = join(work, "make-image.sh");
    await writeFile(script, manifest.script, { mode: 0o755 });
    const names = manifest.packages.map(({ name }) => name);
    options.progress(`installing ${names.length} packages into the image ${id}`);
    const what = [join(imagesDir, id), manifest.suite, source, names.join(","), modeOf(manifest)];
    await runScript(script, what, options.signal);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  const image = openImage(imagesDir, id);
  if (image === undefined) throw new ImageImpossible(`${makeImageScript} succeeded but created no image`);
  await recordBuild(imagesDir, manifest, image.root, Math.round(performance.now() - startedAt));
  return image;
}

/** A root file system of Debian packages without manifest and archive. */
export interface Tree {
  /** Directory of the tree, which appears complete or not at all. */
  readonly root: string;
  readonly suite: string;
  readonly packages: readonly string[];
  /** Directories that package scripts expect, and that images lack. */
  readonly directories?: readonly string[];
}

/** Builds the tree if it is missing. Safe for concurrent processes. Throws ImageImpossible. */
export async function ensureTree(tree: Tree, options: Progress): Promise<void> {
  const { root, suite, packages, directories = [] } = tree;
  if (existsSync(root)) return;
  await ensureTool(options);
  const { main } = await debianMirrors();
  options.progress(`making an image from Debian ${suite} (about half a minute)`);
  const what = [root, suite, main, packages.join(","), modeOf({ installed: process.getuid?.() === 0 })];
  // On the host, where the script builds the tree.
  const prepare = directories.map((path) => `DPkg::Pre-Invoke:: "mkdir -p '${root}.partial${path}'"`);
  await runScript(makeImageScript, what, options.signal, prepare);
}

function modeOf({ installed }: Pick<ImageManifest, "installed">): string {
  return installed ? "installed" : "unpacked";
}

async function ensureTool(options: Progress): Promise<void> {
  if (await works("mmdebstrap", ["--version"])) return;
  const command = "apt-get install --no-install-recommends mmdebstrap";
  if (!(await works("apt-get", ["--version"]))) {
    throw new ImageImpossible("the node image needs mmdebstrap, and this host has no apt-get to install it");
  }
  if (process.getuid?.() !== 0) throw new ImageImpossible(`the node image needs mmdebstrap; as root: ${command}`);
  options.progress("installing mmdebstrap");
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  try {
    await runProgram("apt-get", ["-qq", "update"], { env });
    await runProgram("apt-get", ["-qq", "-y", ...command.split(" ").slice(1)], { env });
  } catch (error) {
    throw new ImageImpossible(`${command}: ${messageOf(error)}`, { cause: error });
  }
}

async function runScript(
  script: string,
  args: readonly string[],
  signal: AbortSignal | undefined,
  more: readonly string[] = [],
): Promise<void> {
  const options = [...(await transportOptions()).map((line) => line.replace(/;$/, "")), ...more];
  const child = spawn("sh", [script, ...args], {
    env: { ...process.env, MAKE_IMAGE_APT_OPTIONS: options.join("\n") },
    stdio: ["ignore", "pipe", "pipe"],
    ...(signal === undefined ? {} : { signal, killSignal: "SIGKILL" as const }),
  });
  let tail = "";
  const append = (text: string) => {
    tail = (tail + text).slice(-4_000);
  };
  child.stdout.setEncoding("utf8").on("data", append);
  child.stderr.setEncoding("utf8").on("data", append);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new ImageImpossible(`the image ${args[0]} could not be built:\n${tail.trim()}`);
}

async function works(command: string, args: string[]): Promise<boolean> {
  try {
    await runProgram(command, args);
    return true;
  } catch {
    // Absent or broken: both need an installation.
    return false;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
