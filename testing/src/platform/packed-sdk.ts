import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { ensurePnpm } from "../../../bin/set-up.js";
import { oneAtATime } from "../controller/claim.ts";

const run = promisify(execFile);

/** The directory of the SDK's package. */
export const sdkDirectory = join(import.meta.dirname, "..", "..", "..", "sdk");

/** Packs the SDK as it is published, with the exports of its publishConfig; resolves to the tarball's path. */
export async function packSdk(directory: string): Promise<string> {
  const args = [await ensurePnpm(), "pack", "--json", "--pack-destination", directory];
  // The package is built in the checkout, where concurrent builds would conflict.
  const { stdout } = await oneAtATime("pack the SDK", () => run(process.execPath, args, { cwd: sdkDirectory }));
  // Scripts of the package may print before npm's own output.
  const { filename } = JSON.parse(stdout.slice(stdout.indexOf("{\n"))) as { filename: string };
  return filename;
}

/** A user's project with the tarball as its only package; no registry is contacted. */
export async function installSdk(tarball: string, directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "package.json"), JSON.stringify({ name: "user", private: true, type: "module" }));
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", tarball], { cwd: directory });
}
