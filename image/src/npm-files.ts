import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { type NpmRequest, titleOf } from "./artifact.ts";
import { artifactMaxBytes } from "./artifact-archive.ts";
import { ImageImpossible } from "./image-impossible.ts";
import type { FetchOptions } from "./tool-tree.ts";
import { inWorkDirectory } from "./work-directory.ts";

/**
 * Fetches a package's tarball by the host's npm, which follows the host's npm configuration: registry, proxies,
 * credentials. `use` gets its path before it is removed. Throws ImageImpossible.
 */
export async function fetchNpmTarball(
  request: NpmRequest,
  { imagesDir, progress, signal }: FetchOptions,
  use: (path: string) => Promise<void>,
): Promise<void> {
  await inWorkDirectory(imagesDir, "npm", async (work) => {
    progress(`fetching the ${titleOf(request)}`);
    const flags = ["--ignore-scripts", "--loglevel=error", "--pack-destination", work];
    const npm = ["npm", "pack", `${request.name}@${request.version}`, ...flags];
    try {
      await runProgram("prlimit", [`--fsize=${artifactMaxBytes}`, ...npm], { cwd: work, ...(signal && { signal }) });
    } catch (error) {
      signal?.throwIfAborted();
      throw new ImageImpossible(`the ${titleOf(request)} could not be fetched: ${reasonOf(error)}`, { cause: error });
    }
    const [file] = (await readdir(work)).filter((name) => name.endsWith(".tgz"));
    if (file === undefined) throw new ImageImpossible(`npm ended without the tarball of the ${titleOf(request)}`);
    await use(join(work, file));
  });
}

function reasonOf(error: unknown): string {
  const output = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
  return (output === "" ? (error instanceof Error ? error.message : String(error)) : output).slice(0, 2_000);
}
