import { copyFile, readdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import {
  type Artifact,
  type ArtifactRequest,
  type GoRequest,
  type MavenRequest,
  type NpmRequest,
  type PluginRequest,
  type TextRequest,
  titleOf,
} from "./artifact.ts";
import { type ArtifactArchive, artifactMaxBytes, openArtifactArchive } from "./artifact-archive.ts";
import { addProgramOfDeb } from "./deb-program.ts";
import { ensureGoProgram, modulesOf } from "./go-program.ts";
import { ImageImpossible } from "./image-impossible.ts";
import { fetchMavenFiles } from "./maven-files.ts";
import type { FetchOptions, ToolOptions } from "./tool-tree.ts";
import { inWorkDirectory } from "./work-directory.ts";

/** User of tools that build and fetch, where this process is root. */
const toolUid = 65_532;

/**
 * The artifacts of a recipe, in order, fetched into the archive where it lacks them: programs are built, files and
 * tarballs are fetched, and nothing has another hash than the recipe's. Throws ImageImpossible.
 */
export async function fetchArtifacts(requests: readonly ArtifactRequest[], options: FetchOptions): Promise<Artifact[]> {
  const archive = openArtifactArchive(options.imagesDir);
  const sizes = new Map<string, number>();
  const pinned = requests.filter((each) => each.kind === "maven" || each.kind === "npm");
  const toFetch: (MavenRequest | NpmRequest)[] = [];
  for (const each of pinned) {
    const size = await archive.find(each.sha256);
    if (size === undefined) toFetch.push(each);
    else sizes.set(each.sha256, size);
  }
  const add = async (request: MavenRequest | NpmRequest, path: string) => {
    const { sizeBytes } = await archive.add(path, titleOf(request), request.sha256);
    sizes.set(request.sha256, sizeBytes);
  };
  const files = toFetch.filter((each) => each.kind === "maven");
  if (files.length > 0)
    await fetchMavenFiles(files, toolOptions(options), async (paths) => {
      for (const [at, request] of files.entries()) await add(request, paths[at] ?? "");
    });
  for (const each of toFetch) if (each.kind === "npm") await fetchNpmTarball(each, options, (path) => add(each, path));

  const artifacts: Artifact[] = [];
  for (const each of requests) {
    if (each.kind === "go") artifacts.push(await buildProgram(each, archive, options));
    else if (each.kind === "text") artifacts.push(await writeText(each, archive, options));
    else if (each.kind === "plugin") artifacts.push(await addPlugin(each, archive));
    else if (each.kind === "deb") artifacts.push(await addProgramOfDeb(each, archive, options));
    else artifacts.push(pinnedArtifact(each, sizes.get(each.sha256) ?? 0));
  }
  return artifacts;
}

/** Copies a plugin into the archive, so that its file on the host is no longer needed. Another content is refused. */
async function addPlugin(request: PluginRequest, archive: ArtifactArchive): Promise<Artifact> {
  const { kind, name, version, sha256, file, path } = request;
  const found = await archive.find(sha256);
  const sizeBytes = found ?? (await archive.add(file, titleOf(request), sha256)).sizeBytes;
  return { kind, name, version, sha256, sizeBytes, path, form: "zip" };
}

/** Writes a recipe's text into the archive, so that the manifest is sufficient to build the image again. */
async function writeText(request: TextRequest, archive: ArtifactArchive, options: FetchOptions): Promise<Artifact> {
  const { kind, name, version, text, path } = request;
  return inWorkDirectory(options.imagesDir, "text", async (work) => {
    const file = join(work, "text");
    await writeFile(file, text);
    const { sha256, sizeBytes } = await archive.add(file, titleOf(request));
    return { kind, name, version, sha256, sizeBytes, path, form: "file" };
  });
}

/** Builds a program. The archive has the hash of the built program, so the toolchain is part of the contents. */
async function buildProgram(request: GoRequest, archive: ArtifactArchive, options: FetchOptions): Promise<Artifact> {
  const { kind, path, module, version, sum } = request;
  const { kind: _kind, path: _path, ...program } = request;
  const name = basename(request.package);
  const directory = await ensureGoProgram(program, toolOptions(options));
  const { sha256, sizeBytes } = await archive.add(join(directory, name), titleOf(request));
  return inWorkDirectory(options.imagesDir, "modules", async (work) => {
    await copyFile(join(archive.directory, sha256), join(work, name));
    const modules = await modulesOf(name, work, toolOptions(options));
    return { kind, name: module, version, sha256, sizeBytes, path, form: "program", sum, modules };
  });
}

/** An artifact whose hash the recipe has. */
function pinnedArtifact(request: MavenRequest | NpmRequest, sizeBytes: number): Artifact {
  const { kind, version, sha256, path } = request;
  if (kind === "npm") return { kind, name: request.name, version, sha256, sizeBytes, path, form: "tarball" };
  const { group, artifact, extension, classifier, unpack } = request;
  return {
    kind,
    name: `${group}:${artifact}`,
    version,
    sha256,
    sizeBytes,
    path,
    form: unpack === true ? "zip" : "file",
    ...(extension !== undefined && { extension }),
    ...(classifier !== undefined && { classifier }),
  };
}

function toolOptions(options: FetchOptions): ToolOptions {
  return { ...options, uid: toolUid, asRoot: process.getuid?.() === 0 };
}

/**
 * Fetches a package's tarball by the host's npm, which follows the host's npm configuration: registry, proxies,
 * credentials. `use` gets its path before it is removed. Throws ImageImpossible.
 */
async function fetchNpmTarball(
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
