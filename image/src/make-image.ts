import { readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { AddedArtifacts } from "./artifact.ts";
import { openArtifactArchive } from "./artifact-archive.ts";
import { ensureTool, manualPages, modeOf, type Progress, runScript } from "./build-tree.ts";
import { packagesOf, type RecipeName, recipes } from "./catalog.ts";
import { fetchArtifacts } from "./fetch-artifacts.ts";
import { ImageImpossible } from "./image-impossible.ts";
import { type ImageManifest, manifestOf, recordBuild, readManifest, writeManifest } from "./image-manifest.ts";
import { type Additions, faultOf, noAdditions } from "./additions.ts";
import type { Addition } from "./addition-source.ts";
import type { NodeImage } from "./node-image.ts";
import { addArtifactsScript, findImage, makeImageScript, newestId, openImage, setNewest } from "./node-image.ts";
import type { Recipe } from "./recipe.ts";
import { openPackageArchive } from "./package-archive.ts";
import { openPackageSource } from "./package-source.ts";
import type { FetchOptions } from "./tool-tree.ts";
import { inWorkDirectory } from "./work-directory.ts";

export interface NewestOptions extends FetchOptions {
  readonly recipe: RecipeName;
  /** Contents that the operator adds to it. */
  readonly additions?: Additions;
}

/** The recipe's newest image, built first if there is none (half a minute). Safe for concurrent processes. */
export async function ensureImage(options: NewestOptions): Promise<NodeImage> {
  const { imagesDir, recipe, additions = noAdditions } = options;
  const found = findImage(imagesDir, recipe, additions);
  if (found !== undefined) return found;
  const id = newestId(imagesDir, recipe, additions);
  if (id !== undefined && (await canRemake(imagesDir, id))) return remakeImage(imagesDir, id, options);
  return makeNewest(options);
}

/**
 * Builds an image from the mirror's current packages and makes it the newest; does nothing if it is already. Machines
 * keep their image.
 */
export async function makeNewest(options: NewestOptions): Promise<NodeImage> {
  const { imagesDir, recipe, additions = noAdditions } = options;
  const image = await makeImage(recipe, recipeWith(recipe, additions), options);
  await setNewest(imagesDir, recipe, image.id, additions);
  return image;
}

/** The recipe with what the operator adds. Throws ImageImpossible if that cannot be used, or is absent and required. */
function recipeWith(name: RecipeName, additions: Additions): Recipe {
  const [recipe, fault] = [recipes[name], faultOf(name, additions)];
  if (fault !== undefined) throw new ImageImpossible(fault);
  const { artifacts: added } = additions[name] ?? noAddition;
  return added.length === 0 ? recipe : { ...recipe, artifacts: [...(recipe.artifacts ?? []), ...added] };
}

const noAddition: Addition = { artifacts: [] };

/**
 * Builds an image of this recipe from the mirror's current packages and the recipe's artifacts, if there is none of the
 * same contents. Throws ImageImpossible.
 */
export async function makeImage(name: string, recipe: Recipe, options: FetchOptions): Promise<NodeImage> {
  const { imagesDir, signal, progress } = options;
  const { suite, beside } = recipe;
  await ensureTool(options);
  progress(`building an image from Debian ${suite} (about half a minute)`);
  const source = await openPackageSource(join(imagesDir, "packages"));
  try {
    const names = packagesOf(recipe);
    const resolved = await source.resolve({ suite, names, besideSuite: beside?.suite }, signal);
    const packages = resolved.map(({ uri: _uri, ...each }) => each);
    const artifacts = await artifactsOf(recipe, options);
    const script = readFileSync(makeImageScript, "utf8");
    const installed = process.getuid?.() === 0;
    const manifest = manifestOf(suite, { packages, script, installed, ...(artifacts && { artifacts }) }, name);
    // Written first: packages without a manifest would be removed by a sweep.
    if (readManifest(imagesDir, manifest.id) === undefined) await writeManifest(imagesDir, manifest);
    progress(`fetching the image's ${packages.length} packages`);
    await openPackageArchive(imagesDir).add(resolved, source, signal);
    return await remakeImage(imagesDir, manifest.id, options);
  } finally {
    await source.close();
  }
}

async function artifactsOf({ artifacts = [] }: Recipe, options: FetchOptions): Promise<AddedArtifacts | undefined> {
  if (artifacts.length === 0) return undefined;
  const files = await fetchArtifacts(artifacts, options);
  return { files, script: readFileSync(addArtifactsScript, "utf8") };
}

/** True if the image's manifest and all its packages and artifacts are on this host. */
export async function canRemake(imagesDir: string, id: string): Promise<boolean> {
  const manifest = readManifest(imagesDir, id);
  if (manifest === undefined) return false;
  const [packages, artifacts] = await Promise.all([
    openPackageArchive(imagesDir).missing(manifest.packages),
    openArtifactArchive(imagesDir).missing(manifest.artifacts?.files ?? []),
  ]);
  return packages.length + artifacts.length === 0;
}

/**
 * Builds an image from its manifest and the archives, without a network, if its tree is absent. The manifest includes
 * the scripts: equal ids have equal contents. Throws ImageImpossible.
 */
export async function remakeImage(imagesDir: string, id: string, options: Progress): Promise<NodeImage> {
  const found = openImage(imagesDir, id);
  if (found !== undefined) return found;
  const manifest = readManifest(imagesDir, id);
  if (manifest === undefined) throw new ImageImpossible(`there is no manifest of the image ${id}`);
  if (manifest.installed && process.getuid?.() !== 0)
    throw new ImageImpossible(`the image ${id} was built as root, and can only be built again as root`);
  await ensureTool(options);
  const startedAt = performance.now();
  await inWorkDirectory(imagesDir, id, (work) => buildTree(imagesDir, manifest, work, options));
  const image = openImage(imagesDir, id);
  if (image === undefined) throw new ImageImpossible(`${makeImageScript} succeeded but created no image`);
  await recordBuild(imagesDir, manifest, image.root, Math.round(performance.now() - startedAt));
  return image;
}

/** Builds the tree, which appears complete or not at all. */
async function buildTree(imagesDir: string, manifest: ImageManifest, work: string, options: Progress): Promise<void> {
  const { id, suite, packages, artifacts } = manifest;
  const source = await openPackageArchive(imagesDir).writeRepository(packages, suite, join(work, "repository"));
  const script = join(work, "make-image.sh");
  await writeFile(script, manifest.script, { mode: 0o755 });
  const names = packages.map(({ name }) => name);
  options.progress(`installing ${names.length} packages into the image ${id}`);
  const destination = join(imagesDir, id);
  const root = artifacts === undefined ? destination : join(work, "tree");
  // The manifest decides: images that were built before any had Java are built again as they were.
  const prepare = names.some((name) => name.startsWith("openjdk-")) ? [manualPages(root)] : [];
  await runScript(script, [root, suite, source, names.join(","), modeOf(manifest)], options.signal, prepare);
  if (artifacts === undefined) return;
  options.progress(`adding ${artifacts.files.length} artifacts to the image ${id}`);
  await openArtifactArchive(imagesDir).addTo(root, artifacts, work, options.signal);
  // A concurrent build of the same id has the same contents.
  await rename(root, destination).catch((error: unknown) => {
    if (openImage(imagesDir, id) === undefined) throw error;
  });
}
