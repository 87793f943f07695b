import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import type { Suite } from "./catalogue.ts";
import { recipes } from "./catalogue.ts";
import type { NodeImage } from "./node-image.ts";
import { findImage, imageRoot, makeImageScript } from "./node-image.ts";

const run = promisify(execFile);

export interface MakeImageOptions {
  readonly imagesDir: string;
  readonly suite: Suite;
  /** Called with one line before each long step. */
  progress(line: string): void;
  readonly signal?: AbortSignal;
}

/** This host cannot make an image; the message says why and names the command that helps. */
export class ImageImpossible extends Error {
  override readonly name = "ImageImpossible";
}

/** A root file system of Debian packages. */
export interface Tree {
  /** Its directory; it is there whole or not at all. */
  readonly root: string;
  readonly suite: string;
  readonly packages: readonly string[];
}

/** The suite's image, made first when it is missing (half a minute). Safe to call from several processes at once. */
export async function ensureImage(options: MakeImageOptions): Promise<NodeImage> {
  const { imagesDir, suite } = options;
  await ensureTree({ root: imageRoot(imagesDir, suite), suite, packages: recipes[suite].packages }, options);
  const image = findImage(imagesDir, suite);
  if (image === undefined) throw new ImageImpossible(`${makeImageScript} ended well but left no image`);
  return image;
}

/** Makes the tree when it is missing. Safe to call from several processes at once. Throws ImageImpossible. */
export async function ensureTree(tree: Tree, options: Pick<MakeImageOptions, "progress" | "signal">): Promise<void> {
  if (existsSync(tree.root)) return;
  await ensureTool(options);
  const mirror = await debianMirror();
  options.progress(`making an image from Debian ${tree.suite} (about half a minute)`);
  await make(tree, mirror, options.signal);
}

async function ensureTool(options: Pick<MakeImageOptions, "progress">): Promise<void> {
  if (await works("mmdebstrap", ["--version"])) return;
  const command = "apt-get install --no-install-recommends mmdebstrap";
  if (!(await works("apt-get", ["--version"]))) {
    throw new ImageImpossible("the node image needs mmdebstrap, and this host has no apt-get to install it");
  }
  if (process.getuid?.() !== 0) throw new ImageImpossible(`the node image needs mmdebstrap; as root: ${command}`);
  options.progress("installing mmdebstrap");
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  try {
    await run("apt-get", ["-qq", "update"], { env });
    await run("apt-get", ["-qq", "-y", ...command.split(" ").slice(1)], { env });
  } catch (error) {
    throw new ImageImpossible(`${command}: ${messageOf(error)}`, { cause: error });
  }
}

/** Debian's address as this machine's own apt has it: the mirror is the operator's choice, never ours. */
async function debianMirror(): Promise<string> {
  const { stdout } = await run("apt-get", ["indextargets", "--format", "$(REPO_URI)"]);
  const mirror = stdout.split("\n").find((uri) => /\/debian\/?$/.test(uri));
  if (mirror === undefined)
    throw new ImageImpossible("apt is set up with no Debian mirror (a URI that ends in /debian)");
  return mirror;
}

/** Proxies and certificates that apt is set up with count inside the image's apt too. */
async function transportOptions(): Promise<string> {
  const { stdout } = await run("apt-config", ["dump"]);
  const lines = stdout.split("\n").map((line) => line.replace(/;$/, ""));
  return lines.filter((line) => /^Acquire::https?::\S+ "[^"]+"$/.test(line)).join("\n");
}

async function make({ root, suite, packages }: Tree, mirror: string, signal: AbortSignal | undefined): Promise<void> {
  const env = { ...process.env, MAKE_IMAGE_APT_OPTIONS: await transportOptions() };
  const child = spawn(makeImageScript, [root, suite, mirror, packages.join(",")], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    ...(signal === undefined ? {} : { signal }),
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
  if (code !== 0) throw new ImageImpossible(`the image ${root} could not be made:\n${tail.trim()}`);
}

async function works(command: string, args: string[]): Promise<boolean> {
  try {
    await run(command, args);
    return true;
  } catch {
    // Absent or broken is the same answer: it has to be installed.
    return false;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
