import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { oneAtATime } from "../controller/claim.ts";

const run = promisify(execFile);

/** The directory of the SDK's package. */
export const sdkDirectory = join(import.meta.dirname, "..", "..", "..", "sdk");

const root = join(sdkDirectory, "..");

/** The command by which docs/start/api.md packs the SDK, such as `npm pack ./sdk`. */
function packCommand(): readonly string[] {
  const [command] = /^npm pack [^#\n]*/m.exec(readFileSync(join(root, "docs", "start", "api.md"), "utf8")) ?? [];
  assert(command !== undefined, "docs/start/api.md has a command that packs the SDK");
  return command.trim().split(/\s+/);
}

/** Packs the SDK by the documented command; resolves to the tarball's path. */
export async function packSdk(directory: string): Promise<string> {
  const [npm = "", ...args] = packCommand();
  const options = ["--json", "--pack-destination", directory];
  // The package is built in the checkout, where concurrent builds would conflict.
  const { stdout } = await oneAtATime("pack the SDK", () => run(npm, [...args, ...options], { cwd: root }));
  const [packed] = JSON.parse(stdout) as { filename: string }[];
  assert(packed !== undefined, "npm names the package that it made");
  return join(directory, packed.filename);
}

/** A user's project with the tarball as its only package; no registry is contacted. */
export async function installSdk(tarball: string, directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "package.json"), JSON.stringify({ name: "user", private: true, type: "module" }));
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", tarball], { cwd: directory });
}
