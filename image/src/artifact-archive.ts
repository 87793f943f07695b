import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { copyFile, mkdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { runProgram } from "@holdfast/common/run-program.ts";
import type { AddedArtifacts, Artifact } from "./artifact.ts";
import { ImageImpossible } from "./image-impossible.ts";

/** Maximum size of an artifact's file, in bytes. */
export const artifactMaxBytes = 1 << 30;

/**
 * Archive of artifacts, each a file named by its SHA-256: `<imagesDir>/artifacts/<hash>`. It is separate from the
 * archive of packages, because checkouts of earlier releases on the same host remove files from that archive which no
 * package names.
 */
export interface ArtifactArchive {
  readonly directory: string;
  /** Size in bytes of the file with this hash, which later sweeps then retain for a day; undefined if it is absent. */
  find(sha256: string): Promise<number | undefined>;
  /**
   * Adds a copy of the file, which appears complete or not at all, and returns its hash and size. Throws
   * ImageImpossible, with `title` in its message, for another hash than the expected one, and for a file that is too
   * large.
   */
  add(path: string, title: string, expected?: string): Promise<{ readonly sha256: string; readonly sizeBytes: number }>;
  /** Adds the artifacts to a tree by their script, a copy of which `work` gets. Needs no network. */
  addTo(tree: string, artifacts: AddedArtifacts, work: string, signal?: AbortSignal): Promise<void>;
  /** The artifacts without a file in the archive. */
  missing(artifacts: readonly Artifact[]): Promise<Artifact[]>;
}

export function openArtifactArchive(imagesDir: string): ArtifactArchive {
  const directory = artifactsDirectory(imagesDir);
  const pathOf = (sha256: string) => join(directory, sha256);

  async function missing(artifacts: readonly Artifact[]): Promise<Artifact[]> {
    const sizes = await Promise.all(artifacts.map(({ sha256 }) => stat(pathOf(sha256)).catch(() => undefined)));
    return artifacts.filter((_, at) => sizes[at] === undefined);
  }

  return {
    directory,
    missing,
    async find(sha256) {
      const path = pathOf(sha256);
      const now = new Date();
      try {
        await utimes(path, now, now);
        return (await stat(path)).size;
      } catch {
        // Not fetched yet.
        return undefined;
      }
    },
    async add(path, title, expected) {
      const { size: sizeBytes } = await stat(path);
      if (sizeBytes > artifactMaxBytes)
        throw new ImageImpossible(`the ${title} has ${sizeBytes} bytes; the limit is ${artifactMaxBytes}`);
      await mkdir(directory, { recursive: true });
      const partial = join(directory, `${randomUUID()}.partial`);
      try {
        // The copy is what is hashed: nothing changes it between the check and its use.
        await copyFile(path, partial);
        const sha256 = await hashOf(partial);
        if (expected !== undefined && sha256 !== expected)
          throw new ImageImpossible(`the ${title} has the SHA-256 ${sha256} instead of ${expected}`);
        await rename(partial, pathOf(sha256));
        return { sha256, sizeBytes };
      } finally {
        await rm(partial, { force: true });
      }
    },
    async addTo(tree, { files, script }, work, signal) {
      const [lost] = await missing(files);
      if (lost !== undefined)
        throw new ImageImpossible(
          `the archive has no ${lost.kind} artifact ${lost.name} ${lost.version} (${lost.sha256})`,
        );
      const [program, list] = [join(work, "add-artifacts.sh"), join(work, "artifacts")];
      await writeFile(program, script, { mode: 0o755 });
      await writeFile(list, files.map(({ sha256, form, path }) => `${sha256} ${form} ${path}\n`).join(""));
      try {
        await runProgram(program, [tree, directory, list], { ...(signal && { signal }) });
      } catch (error) {
        signal?.throwIfAborted();
        const output = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
        throw new ImageImpossible(`artifacts could not be added: ${output || String(error)}`, { cause: error });
      }
    },
  };
}

export function artifactsDirectory(imagesDir: string): string {
  return join(imagesDir, "artifacts");
}

/** SHA-256 of a file, hex. */
export async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}
