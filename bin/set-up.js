// Brings a checkout from "Node 20 and npm" to "everything installed": the pinned Node, pnpm, and the packages of the
// lockfile. Plain JavaScript without dependencies, because it runs before they are installed.
import { spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { configureMerge } from "./merge-generated.js";

const nodeVersion = "24.21.0";

export const checkout = dirname(dirname(fileURLToPath(import.meta.url)));

/** The cache of everything that can be created again, shared by all checkouts of a user. */
export const cache = process.env.HOLDFAST_CACHE ?? join(homedir(), ".cache", "holdfast");

/** A failure with a message for the user that names the remedy; printed without a stack. */
export class SetUpError extends Error {}

/** Prints to standard error, which leaves standard output to the program. */
export function progress(line) {
  process.stderr.write(`holdfast: ${line}\n`);
}

/**
 * Installs what is missing, and configures merges of generated files; takes milliseconds when nothing is to do. Returns
 * the pinned Node's path and an environment in which Node 24 and the packages' commands come first.
 */
export async function setUp() {
  configureMerge(checkout);
  const node = await ensureNode();
  await ensurePackages(node);
  return { node, env: environmentFor(node) };
}

function environmentFor(node) {
  // Debian's PATH of a user other than root has no sbin, where pivot_root and the like are.
  const system = ["/usr/local/sbin", "/usr/sbin", "/sbin"];
  const path = [dirname(node), join(checkout, "node_modules", ".bin"), process.env.PATH ?? "", ...system].join(
    delimiter,
  );
  return {
    ...process.env,
    PATH: path,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(cache, "compile-cache"),
  };
}

/** Also when the host's own Node has this version: machines have an image instead of the host's software. */
async function ensureNode() {
  const name = `node-${process.platform}-${process.arch}`;
  const directory = join(cache, `node-${nodeVersion}`);
  await ensureFromNpm(`${name}@${nodeVersion}`, directory, `installing Node ${nodeVersion} (about 10 seconds)`);
  return join(directory, "node_modules", name, "bin", "node");
}

/** Path of the pinned pnpm's program. */
async function ensurePnpm() {
  const { packageManager } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8"));
  const directory = join(cache, packageManager.replace("@", "-"));
  await ensureFromNpm(packageManager, directory, `installing ${packageManager.replace("@", " ")}`);
  return join(directory, "node_modules", "pnpm", "bin", "pnpm.mjs");
}

async function ensurePackages(node) {
  const digest = createHash("sha256");
  for (const file of ["pnpm-lock.yaml", "pnpm-workspace.yaml"]) digest.update(readFileSync(join(checkout, file)));
  const expected = digest.digest("hex");
  const stamp = join(checkout, "node_modules", ".holdfast-packages");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === expected) return;

  const pnpm = await ensurePnpm();
  progress("installing packages (about 10 seconds)");
  await run(node, [pnpm, "install", "--frozen-lockfile", "--reporter=append-only"], { env: environmentFor(node) });
  writeFileSync(stamp, expected);
}

/** Installs one npm package into a directory, which appears complete or not at all. */
async function ensureFromNpm(specifier, directory, line) {
  if (existsSync(directory)) return;
  progress(line);
  const partial = `${directory}.${randomUUID()}`;
  mkdirSync(partial, { recursive: true });
  const flags = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  try {
    await run("npm", ["install", "--prefix", partial, ...flags, specifier], { cwd: partial });
    renameSync(partial, directory);
  } catch (error) {
    // Another process may have been first; its result is the same.
    if (!existsSync(directory)) throw error;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

/** Runs a command quietly: prints its output only when it fails, and a notice when it takes long. */
function run(command, args, options = {}) {
  const startedAt = Date.now();
  const sign = setInterval(() => progress(`still at it: ${Math.round((Date.now() - startedAt) / 1000)} s`), 15_000);
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: checkout, stdio: ["ignore", "pipe", "pipe"], ...options });
    let output = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (output += chunk));
    child.once("error", (error) => {
      const hint = error.code === "ENOENT" ? `${command} is not installed; it comes with Node.js` : error.message;
      reject(new SetUpError(hint));
    });
    child.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new SetUpError(`this failed: ${[command, ...args].join(" ")}\n${output.trim()}`));
    });
  }).finally(() => clearInterval(sign));
}

// `npm run set-up`
if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) await setUp();
