import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ConsoleFiles, readConsoleFiles } from "@holdfast/gateway/console/console-files.ts";

const checkout = join(import.meta.dirname, "..", "..");

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

async function build(): Promise<ConsoleFiles> {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-console-"));
  try {
    const child = spawn(process.execPath, [join(checkout, "console", "bundle.ts"), directory], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let errorOutput = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (errorOutput = (errorOutput + text).slice(-2_000)));
    const [status] = (await once(child, "close")) as [number | null];
    if (status !== 0) throw new Error(`the console was not built: ${errorOutput}`);
    return await readConsoleFiles(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
