import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import type { Suite } from "./catalog.ts";
import { packagesOf, recipes } from "./catalog.ts";
import { ImageImpossible } from "./image-impossible.ts";
import { type ImageManifest, manifestOf, noteMade, readManifest, writeManifest } from "./image-manifest.ts";
import type { NodeImage } from "./node-image.ts";
import { findImage, makeImageScript, newestId, openImage, setNewest } from "./node-image.ts";
import { openPackageArchive } from "./package-archive.ts";
import { debianMirrors, openPackageSource, transportOptions } from "./package-source.ts";

export interface Progress {
  /** Called with one line before each long step. */
  progress(line: string): void;
  readonly signal?: AbortSignal;
}

export interface MakeImageOptions extends Progress {
  readonly imagesDir: string;
  readonly suite: Suite;
}

/** The suite's newest image, made first when there is none (half a minute). Safe to call from several processes at once. */
export async function ensureImage(options: MakeImageOptions): Promise<NodeImage> {
  const { imagesDir, suite } = options;
  const found = findImage(imagesDir, suite);
  if (found !== undefined) return found;
  const id = newestId(imagesDir, suite);
  if (id !== undefined && (await canRemake(imagesDir, id))) return remakeImage(imagesDir, id, options);
  return makeNewest(options);
}

/**
 * Makes an image of what the mirror has now, and calls it the newest. What is the newest already stays as it is. Machines
 * keep the image that they have.
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
    // First: what is in the archive is in somebody's manifest, so that no sweep takes it for left over.
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

/** Are its manifest and all its packages here? */
export async function canRemake(imagesDir: string, id: string): Promise<boolean> {
  const manifest = readManifest(imagesDir, id);
  if (manifest === undefined) return false;
  return (await openPackageArchive(imagesDir).missing(manifest.packages)).length === 0;
}

/**
 * Makes an image out of its manifest and the archive alone, when its tree is not there. The script is the manifest's too: the
 * same id is the same contents. Throws ImageImpossible.
 */
export async function remakeImage(imagesDir: string, id: string, options: Progress): Promise<NodeImage> {
  const found = openImage(imagesDir, id);
  if (found !== undefined) return found;
  const manifest = readManifest(imagesDir, id);
  if (manifest === undefined) throw new ImageImpossible(`nothing is known of the image ${id}`);
  if (manifest.installed && process.getuid?.() !== 0)
    throw new ImageImpossible(`the image ${id} was made as root, and can only be made again so`);
  await ensureTool(options);
  const work = join(imagesDir, `${id}.${randomUUID()}.making`);
  const startedAt = performance.now();
  try {
    await rm(work, { recursive: true, force: true });
    const source = await openPackageArchive(imagesDir).layOut(
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
  if (image === undefined) throw new ImageImpossible(`${makeImageScript} ended well but left no image`);
  await noteMade(imagesDir, manifest, image.root, Math.round(performance.now() - startedAt));
  return image;
}

/** A root file system of Debian packages, of which nothing but its directory is kept. */
export interface Tree {
  /** Its directory; it is there whole or not at all. */
  readonly root: string;
  readonly suite: string;
  readonly packages: readonly string[];
  /** Directories that scripts of the packages take for granted, and images leave out. */
  readonly directories?: readonly string[];
}

/** Makes the tree when it is missing. Safe to call from several processes at once. Throws ImageImpossible. */
export async function ensureTree(tree: Tree, options: Progress): Promise<void> {
  const { root, suite, packages, directories = [] } = tree;
  if (existsSync(root)) return;
  await ensureTool(options);
  const { main } = await debianMirrors();
  options.progress(`making an image from Debian ${suite} (about half a minute)`);
  const what = [root, suite, main, packages.join(","), modeOf({ installed: process.getuid?.() === 0 })];
  // On the host, where the script has the tree until it is whole.
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
  const keep = (text: string) => {
    tail = (tail + text).slice(-4_000);
  };
  child.stdout.setEncoding("utf8").on("data", keep);
  child.stderr.setEncoding("utf8").on("data", keep);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new ImageImpossible(`the image ${args[0]} could not be made:\n${tail.trim()}`);
}

async function works(command: string, args: string[]): Promise<boolean> {
  try {
    await runProgram(command, args);
    return true;
  } catch {
    // Absent or broken is the same answer: it has to be installed.
    return false;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
