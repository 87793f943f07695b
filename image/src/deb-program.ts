import { copyFile, lstat } from "node:fs/promises";
import { basename, join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { type Artifact, type DebRequest, titleOf } from "./artifact.ts";
import { type ArtifactArchive, hashOf } from "./artifact-archive.ts";
import { ImageImpossible } from "./image-impossible.ts";
import type { FetchOptions } from "./tool-tree.ts";
import { inWorkDirectory } from "./work-directory.ts";

/**
 * Adds a program of an operator's Debian package to the archive, so that the package is no longer needed. dpkg-deb,
 * which mmdebstrap requires, unpacks it; no script of the package runs. Throws ImageImpossible for another package than
 * the checked one, or one without the program.
 */
export async function addProgramOfDeb(
  request: DebRequest,
  archive: ArtifactArchive,
  { imagesDir, signal }: FetchOptions,
): Promise<Artifact> {
  const { kind, name, version, path } = request;
  return inWorkDirectory(imagesDir, "deb", async (work) => {
    // The copy is what is hashed: nothing changes it between the check and its use.
    const copy = join(work, "package.deb");
    await copyFile(request.file, copy);
    const sha256 = await hashOf(copy);
    if (sha256 !== request.sha256)
      throw new ImageImpossible(`the ${titleOf(request)} has the SHA-256 ${sha256} instead of ${request.sha256}`);
    const contents = join(work, "contents");
    await unpack(request, copy, contents, signal);
    const program = join(contents, request.program);
    const facts = await lstat(program).catch(() => undefined);
    if (facts?.isFile() !== true)
      throw new ImageImpossible(`${basename(request.file)}: the package has no program ${request.program}`);
    const added = await archive.add(program, titleOf(request));
    return { kind, name, version, ...added, path, form: "program" };
  });
}

async function unpack(request: DebRequest, copy: string, contents: string, signal?: AbortSignal): Promise<void> {
  const file = basename(request.file);
  const options = { ...(signal && { signal }) };
  try {
    const { stdout } = await runProgram("dpkg-deb", ["--show", "--showformat=${Package} ${Version}", copy], options);
    if (stdout !== `${request.name} ${request.version}`)
      throw new ImageImpossible(`${file}: the package is ${stdout}, unlike its name`);
    await runProgram("dpkg-deb", ["--extract", copy, contents], options);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof ImageImpossible) throw error;
    const output = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    throw new ImageImpossible(`${file}: the package cannot be unpacked: ${output || String(error)}`, { cause: error });
  }
}
