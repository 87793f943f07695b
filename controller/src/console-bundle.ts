import { spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { constants } from "node:fs";
import { access, mkdir, mkdtemp, readdir, readFile, rename, rm } from "node:fs/promises";
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

/**
 * Builds the console of the checkout, or reads the previous build of the same code from the checkout's `console/dist`.
 * A checkout that this process cannot write has no stored build.
 */
export async function build(root: string = checkout): Promise<ConsoleFiles> {
  const stored = join(root, "console", "dist");
  const directory = join(stored, await digestOf(root));
  const found = await readConsoleFiles(directory).catch(() => undefined);
  if (found !== undefined) return found;
  const isStored = await mkdir(stored, { recursive: true })
    .then(() => access(stored, constants.W_OK))
    .then(
      () => true,
      () => false,
    );
  const partial = isStored
    ? join(stored, `partial-${randomUUID()}`)
    : await mkdtemp(join(tmpdir(), "holdfast-console-"));
  try {
    await bundle(root, partial);
    const built = await readConsoleFiles(partial);
    if (isStored) {
      for (const name of await readdir(stored))
        if (!name.startsWith("partial-")) await rm(join(stored, name), { recursive: true, force: true });
      // Another process may have stored the same build.
      await rename(partial, directory).catch(() => undefined);
    }
    return built;
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
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

/** Digest of the code that a build contains. */
async function digestOf(root: string): Promise<string> {
  const names = await Promise.all(
    ["console/src", "sdk/src"].map(async (folder) => {
      const entries = await readdir(join(root, folder), { recursive: true, withFileTypes: true });
      return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
    }),
  );
  const rest = ["console/bundle.ts", "pnpm-lock.yaml"].map((name) => join(root, name));
  const digest = createHash("sha256");
  for (const path of [...names.flat().sort(), ...rest]) {
    const bytes = await readFile(path);
    digest.update(`${path.slice(root.length)} ${bytes.length}\n`).update(bytes);
  }
  return digest.digest("hex").slice(0, 16);
}
