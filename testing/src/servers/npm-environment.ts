import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { oneAtATime } from "../controller/claim.ts";

const execute = promisify(execFile);
const installMs = 600_000;

/** The directory of the programs of these packages, "name@version" each, which are downloaded from npm once. */
export async function npmEnvironment(...names: readonly string[]): Promise<string> {
  const directory = join(cacheDirectory(process.env), "judges", `npm-${names.join("-").replaceAll(/[@/]/g, "-")}`);
  // Test files run concurrently, and any of them may be the first to need it.
  await oneAtATime(`npm ${names.join(" ")}`, () => install(directory, names), installMs);
  return join(directory, "node_modules", ".bin");
}

async function install(directory: string, names: readonly string[]): Promise<void> {
  if (existsSync(directory)) return;
  const incomplete = `${directory}.incomplete`;
  await rm(incomplete, { recursive: true, force: true });
  await mkdir(incomplete, { recursive: true });
  const options = ["--prefix", incomplete, "--ignore-scripts", "--no-audit", "--no-fund"];
  await execute("npm", ["install", ...options, ...names], { timeout: installMs });
  await rename(incomplete, directory);
}
