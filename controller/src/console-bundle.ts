import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { digestOfFiles, storedBuild } from "@holdfast/common/stored-build.ts";
import { type ConsoleFiles, readConsoleFiles } from "@holdfast/gateway/console/console.ts";

const checkout = join(import.meta.dirname, "..", "..");

/** Patterns of the files that determine the build. */
const consoleSources = ["{console,sdk}/src/**", "console/bundle.ts", "pnpm-lock.yaml"];

/**
 * The console that this controller serves: from a directory that console/bundle.ts wrote, or built from the checkout at
 * the first request. A failed build is repeated at the next request.
 */
export function createConsoleBundle(bundleDirectory: string): () => Promise<ConsoleFiles> {
  let files: Promise<ConsoleFiles> | undefined;
  return () => {
    files ??= (bundleDirectory === "" ? build() : readConsoleFiles(bundleDirectory)).catch((error: unknown) => {
      files = undefined;
      throw error;
    });
    return files;
  };
}

/**
 * Builds the console of the checkout, or reads the previous build of the same code from the checkout's `console/dist`.
 * A checkout that this process cannot write has no stored build.
 */
export async function build(root: string = checkout): Promise<ConsoleFiles> {
  const digest = digestOfFiles(root, consoleSources);
  return storedBuild(join(root, "console", "dist"), digest, {
    build: (directory) => bundle(root, directory),
    read: readConsoleFiles,
  });
}

async function bundle(root: string, directory: string): Promise<void> {
  const child = spawn(process.execPath, [join(root, "console", "bundle.ts"), directory], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let errorOutput = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errorOutput = (errorOutput + text).slice(-2_000)));
  const [status] = (await once(child, "close")) as [number | null];
  if (status !== 0) throw new Error(`the console was not built: ${errorOutput}`);
}
