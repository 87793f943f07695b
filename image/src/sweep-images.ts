import { readdir, readFile, readlink, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { artifactsDirectory } from "./artifact-archive.ts";
import { emptyIfAbsent, isImageId, manifestPath, readManifests } from "./image-manifest.ts";
import { usedImages } from "./image-uses.ts";
import { recipeNames } from "./catalog.ts";
import { newestGuestPath } from "./guest-boot.ts";
import { newestPath } from "./node-image.ts";
import type { Additions } from "./additions.ts";
import { fileOf } from "./package-set.ts";

const dayMs = 86_400_000;
/** Retention of the tree of an unused image. */
const treeRetentionMs = 7 * dayMs;
/** Retention of the manifest and packages of an unused image, from which it can be built again. */
const manifestRetentionMs = 30 * dayMs;
/** Age after which an unfinished file is abandoned. */
const unfinishedRetentionMs = dayMs;
const removalSuffix = ".going";
const unused = ".unused";

export interface Swept {
  /** Ids of removed trees, or of trees that a dry run would remove. */
  readonly trees: readonly string[];
  /** Ids of images that cannot be built again any more. */
  readonly manifests: readonly string[];
  /** Removed files of the archives. */
  readonly packages: number;
  readonly artifacts: number;
  readonly archivedBytes: number;
}

export interface SweepOptions {
  readonly imagesDir: string;
  readonly now: number;
  /** Plugins that the operator adds to recipes. */
  readonly additions?: Additions;
  /** Only reports the removals. */
  readonly dryRun?: boolean;
  /** Skips the retention. */
  readonly atOnce?: boolean;
}

/**
 * Removes images and guest kernels that have been unused for 7 days. An image is used by a holder (image-uses.ts), as
 * the newest of its recipe, or by a running process. The tree is removed first and the manifest after 30 days, so that
 * an image that is needed in between can be built again. Safe for concurrent calls and for kills at any line.
 */
export async function sweepImages(options: SweepOptions): Promise<Swept> {
  const { imagesDir, now, dryRun = false, atOnce = false } = options;
  const isDue = async (id: string, retentionMs: number) => atOnce || now - (await unusedSince(id)) >= retentionMs;

  async function needed(): Promise<Set<string>> {
    return new Set([...(await usedImages(imagesDir, now)), ...(await newestImages(options))]);
  }

  /** Time since which sweeps have seen the image unused, in milliseconds since 1970. */
  async function unusedSince(id: string): Promise<number> {
    const [note] = [await readFile(join(imagesDir, id + unused), "utf8").catch(emptyIfAbsent)].flat();
    if (note !== undefined) return Number(note);
    if (!dryRun) await writeFile(join(imagesDir, id + unused), String(now));
    return now;
  }

  async function removeTree(id: string): Promise<boolean> {
    const tree = join(imagesDir, id);
    await rename(tree, tree + removalSuffix);
    // A use may have been recorded since the decision.
    if ((await needed()).has(id)) {
      await rename(tree + removalSuffix, tree);
      return false;
    }
    await removeAll(tree + removalSuffix);
    return true;
  }

  const names = await readdir(imagesDir).catch(emptyIfAbsent);
  const mounted = await mountedDirectories();
  // Without /proc, every image may be in use.
  const isMounted = (id: string) => mounted === undefined || [...mounted].some((root) => root.includes(`/${id}/`));
  const used = await needed();
  const trees: string[] = [];
  for (const name of names) {
    if (!dryRun && (await isLeftOver(imagesDir, name, now))) await removeAll(join(imagesDir, name));
    if (isTool(name)) {
      if (isMounted(name) || !(atOnce || (await isUntouched(join(imagesDir, name), now)))) continue;
      trees.push(name);
      if (!dryRun) await removeAll(join(imagesDir, name));
    }
    if (!isImageId(name)) continue;
    if (used.has(name) || isMounted(name)) await rm(join(imagesDir, name + unused), { force: true });
    else if ((await isDue(name, treeRetentionMs)) && (dryRun || (await removeTree(name)))) trees.push(name);
  }

  const manifests: string[] = [];
  const retained = [];
  for (const manifest of await readManifests(imagesDir)) {
    const { id } = manifest;
    const hasNoTree = !names.includes(id) || trees.includes(id);
    if (used.has(id) || !hasNoTree || !(await isDue(id, manifestRetentionMs))) {
      retained.push(manifest);
      continue;
    }
    manifests.push(id);
    if (dryRun) continue;
    for (const path of [manifestPath(imagesDir, id), join(imagesDir, id + unused), join(imagesDir, `${id}.lock`)])
      await rm(path, { force: true });
  }
  const packageNames = retained.flatMap(({ packages }) => packages.map(({ sha256 }) => fileOf(sha256)));
  const artifactNames = retained.flatMap(({ artifacts }) => artifacts?.files.map(({ sha256 }) => sha256) ?? []);
  const packages = await sweepArchive(options, join(imagesDir, "packages"), new Set(packageNames));
  const artifacts = await sweepArchive(options, artifactsDirectory(imagesDir), new Set(artifactNames));
  return {
    trees,
    manifests,
    packages: packages.files,
    artifacts: artifacts.files,
    archivedBytes: packages.bytes + artifacts.bytes,
  };
}

/**
 * The newest image of each recipe, and the newest guest kernel. Recipes differ between checkouts: each sweep touches
 * the pointers of its checkout's recipes, and a pointer that no sweep touched for a month belongs to a removed
 * checkout.
 */
async function newestImages({ imagesDir, now, additions, dryRun = false }: SweepOptions): Promise<string[]> {
  const ofRecipes = recipeNames.map((recipe) => newestPath(imagesDir, recipe, additions));
  const pointers = new Set([...ofRecipes, newestGuestPath(imagesDir)]);
  const found: string[] = [];
  for (const name of await readdir(join(imagesDir, "newest")).catch(emptyIfAbsent)) {
    const path = join(imagesDir, "newest", name);
    const [id] = [await readFile(path, "utf8").catch(emptyIfAbsent)].flat();
    if (id === undefined) continue;
    const isOwn = pointers.has(path);
    if (isOwn && !dryRun) await utimes(path, now / 1_000, now / 1_000);
    if (isOwn || now - (await stat(path)).mtimeMs < manifestRetentionMs) found.push(id.trim());
    else if (!dryRun) await rm(path, { force: true });
  }
  return found;
}

/**
 * Removes files from an archive that no image has, except new ones: they may belong to an image that is being built.
 */
async function sweepArchive({ now, dryRun }: SweepOptions, directory: string, referred: ReadonlySet<string>) {
  let [files, bytes] = [0, 0];
  for (const name of await readdir(directory).catch(emptyIfAbsent)) {
    if (referred.has(name)) continue;
    const facts = await stat(join(directory, name)).catch(() => undefined);
    if (facts === undefined || now - facts.mtimeMs < unfinishedRetentionMs) continue;
    files += 1;
    bytes += facts.size;
    if (!dryRun) await removeAll(join(directory, name));
  }
  return { files, bytes };
}

/** True for a tool tree or a program that it built: both are built again when a recipe needs them. */
function isTool(name: string): boolean {
  return /^(tools|program)-\S+-[0-9a-f]{16}$/.test(name);
}

async function isUntouched(path: string, now: number): Promise<boolean> {
  const facts = await stat(path).catch(() => undefined);
  return facts !== undefined && now - facts.mtimeMs >= manifestRetentionMs;
}

/** True for an unfinished file of a killed build or sweep. */
async function isLeftOver(imagesDir: string, name: string, now: number): Promise<boolean> {
  if (![removalSuffix, ".partial", ".making"].some((end) => name.endsWith(end))) return false;
  const facts = await stat(join(imagesDir, name)).catch(() => undefined);
  // A rename only updates the change time.
  return facts !== undefined && now - facts.ctimeMs >= unfinishedRetentionMs;
}

/** Removes a directory without crossing mount points. */
async function removeAll(path: string): Promise<void> {
  await runProgram("rm", ["-rf", "--one-file-system", path]);
}

const ignoredCodes = new Set(["ENOENT", "ESRCH", "EACCES", "EPERM", "EINVAL"]);

/**
 * Mounts of all processes of this host, as `root` fields of proc_pid_mountinfo(5): paths within their file systems.
 * Reads each mount namespace once, except namespaces of other users, who have no mounts of images. Undefined without
 * /proc.
 */
export async function mountedDirectories(): Promise<Set<string> | undefined> {
  const roots = new Set<string>();
  const readNamespaces = new Set<string>();
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  if (pids.length === 0) return undefined;
  for (const pid of pids) {
    try {
      const namespace = await readlink(`/proc/${pid}/ns/mnt`);
      if (readNamespaces.has(namespace)) continue;
      const table = await readFile(`/proc/${pid}/mountinfo`, "utf8");
      readNamespaces.add(namespace);
      for (const line of table.split("\n")) roots.add(line.split(" ")[3] ?? "");
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // The process ended during the read, or belongs to another user.
      if (code === undefined || !ignoredCodes.has(code)) throw error;
    }
  }
  return roots;
}
