import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { runProgram } from "@holdfast/common/run-program.ts";
import { ImageImpossible } from "./image-impossible.ts";
import { makeImageScript } from "./node-image.ts";
import { debianMirrors, transportOptions } from "./package-source.ts";

export interface Progress {
  /** Called with a line before each long step. */
  progress(line: string): void;
  readonly signal?: AbortSignal;
}

/** A root file system of Debian packages without manifest and archive. */
export interface Tree {
  /** Directory of the tree, which appears complete or not at all. */
  readonly root: string;
  readonly suite: string;
  readonly packages: readonly string[];
}

/** Builds the tree if it is missing. Safe for concurrent processes. Throws ImageImpossible. */
export async function ensureTree(tree: Tree, options: Progress): Promise<void> {
  const { root, suite, packages } = tree;
  if (existsSync(root)) return;
  await ensureTool(options);
  const { main } = await debianMirrors();
  options.progress(`building an image from Debian ${suite} (about half a minute)`);
  const what = [root, suite, main, packages.join(","), modeOf({ installed: process.getuid?.() === 0 })];
  await runScript(makeImageScript, what, options.signal, [manualPages(root)]);
}

/**
 * The option of apt that creates the directory of manual pages, which images lack, on the host, where the script
 * builds the tree. Java's packages put links there, and their installation fails without it.
 */
export function manualPages(root: string): string {
  return `DPkg::Pre-Invoke:: "mkdir -p '${root}.partial/usr/share/man/man1'"`;
}

/** Mode of the build script. */
export function modeOf({ installed }: { readonly installed: boolean }): string {
  return installed ? "installed" : "unpacked";
}

/** Installs mmdebstrap if it is missing. Throws ImageImpossible. */
export async function ensureTool(options: Progress): Promise<void> {
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

/** Runs the build script with apt's own transport settings. Throws ImageImpossible. */
export async function runScript(
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
