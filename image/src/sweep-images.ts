import { readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { emptyIfAbsent, manifestPath, readManifests } from "./image-manifest.ts";
import { usedImages } from "./image-uses.ts";
import { mountedDirectories } from "./mounted-directories.ts";
import { suites } from "./catalog.ts";
import { isGuestBoot, newestGuestPath } from "./guest-boot.ts";
import { newestPath, suiteOfImage } from "./node-image.ts";
import { fileOf } from "./package-set.ts";

const dayMs = 86_400_000;
/** The tree of an image that nothing needs is kept for so long. */
const treeKeptMs = 7 * dayMs;
/** So long it can still be made again: for whoever needs it after all. */
const manifestKeptMs = 30 * dayMs;
/** What is not finished after this, nobody finishes. */
const unfinishedMs = dayMs;
const going = ".going";
const unused = ".unused";

export interface Swept {
  /** Ids of trees that are gone, or would be in a dry run. */
  readonly trees: readonly string[];
  /** Ids of images that cannot be made again any more. */
  readonly manifests: readonly string[];
  readonly packages: number;
  readonly packageBytes: number;
}

export interface SweepOptions {
  readonly imagesDir: string;
  readonly now: number;
  /** Only says what would go now. */
  readonly dryRun?: boolean;
  /** Removes at once what would be kept for a while. */
  readonly atOnce?: boolean;
}

/**
 * Removes images, and what virtual machines boot from, that nothing has needed for a while: neither a holder (image-uses.ts), nor whoever makes something new, nor a
 * process that runs now. The tree goes first and the manifest much later, so that whoever comes to need an image while it goes
 * has it made again. May be called by several at once, and be killed at any line.
 */
export async function sweepImages(options: SweepOptions): Promise<Swept> {
  const { imagesDir, now, dryRun = false, atOnce = false } = options;
  const isDue = async (id: string, keptMs: number) => atOnce || now - (await unusedSince(id)) >= keptMs;

  async function needed(): Promise<Set<string>> {
    return new Set([...(await usedImages(imagesDir, now)), ...(await newestImages(options))]);
  }

  /** Since when nothing needs it, as far as sweeps have seen. */
  async function unusedSince(id: string): Promise<number> {
    const [note] = [await readFile(join(imagesDir, id + unused), "utf8").catch(emptyIfAbsent)].flat();
    if (note !== undefined) return Number(note);
    if (!dryRun) await writeFile(join(imagesDir, id + unused), String(now));
    return now;
  }

  async function removeTree(id: string): Promise<boolean> {
    const tree = join(imagesDir, id);
    await rename(tree, tree + going);
    // Somebody may have come to need it since this was decided.
    if ((await needed()).has(id)) {
      await rename(tree + going, tree);
      return false;
    }
    await removeAll(tree + going);
    return true;
  }

  const names = await readdir(imagesDir).catch(emptyIfAbsent);
  const mounted = await mountedDirectories();
  // Where nobody can tell what runs, everything may.
  const isMounted = (id: string) => mounted === undefined || [...mounted].some((root) => root.includes(`/${id}/`));
  const used = await needed();
  const trees: string[] = [];
  for (const name of names) {
    if (!dryRun && (await isLeftOver(imagesDir, name, now))) await removeAll(join(imagesDir, name));
    if (suiteOfImage(name) === undefined && !isGuestBoot(name)) continue;
    if (used.has(name) || isMounted(name)) await rm(join(imagesDir, name + unused), { force: true });
    else if ((await isDue(name, treeKeptMs)) && (dryRun || (await removeTree(name)))) trees.push(name);
  }

  const manifests: string[] = [];
  const kept = [];
  for (const manifest of await readManifests(imagesDir)) {
    const { id } = manifest;
    const isGone = !names.includes(id) || trees.includes(id);
    if (used.has(id) || !isGone || !(await isDue(id, manifestKeptMs))) {
      kept.push(manifest);
      continue;
    }
    manifests.push(id);
    if (dryRun) continue;
    for (const path of [manifestPath(imagesDir, id), join(imagesDir, id + unused), join(imagesDir, `${id}.lock`)])
      await rm(path, { force: true });
  }
  const referred = new Set(kept.flatMap(({ packages }) => packages.map(({ sha256 }) => fileOf(sha256))));
  return { trees, manifests, ...(await sweepPackages(options, referred)) };
}

/**
 * The newest of each suite and recipe, and the newest that virtual machines boot from. Recipes differ from checkout to checkout: whoever sweeps marks those of its own as
 * alive, and what nobody has marked for long is of a checkout that is gone.
 */
async function newestImages({ imagesDir, now, dryRun = false }: SweepOptions): Promise<string[]> {
  const own = new Set([...suites.map((suite) => newestPath(imagesDir, suite)), newestGuestPath(imagesDir)]);
  const found: string[] = [];
  for (const name of await readdir(join(imagesDir, "newest")).catch(emptyIfAbsent)) {
    const path = join(imagesDir, "newest", name);
    const [id] = [await readFile(path, "utf8").catch(emptyIfAbsent)].flat();
    if (id === undefined) continue;
    const isOwn = own.has(path);
    if (isOwn && !dryRun) await utimes(path, now / 1_000, now / 1_000);
    if (isOwn || now - (await stat(path)).mtimeMs < manifestKeptMs) found.push(id.trim());
    else if (!dryRun) await rm(path, { force: true });
  }
  return found;
}

/** Packages of which no image is made. A young one may belong to an image that is being made. */
async function sweepPackages({ imagesDir, now, dryRun }: SweepOptions, referred: ReadonlySet<string>) {
  const directory = join(imagesDir, "packages");
  let packages = 0;
  let packageBytes = 0;
  for (const name of await readdir(directory).catch(emptyIfAbsent)) {
    if (referred.has(name)) continue;
    const facts = await stat(join(directory, name)).catch(() => undefined);
    if (facts === undefined || now - facts.mtimeMs < unfinishedMs) continue;
    packages += 1;
    packageBytes += facts.size;
    if (!dryRun) await removeAll(join(directory, name));
  }
  return { packages, packageBytes };
}

/** What a making or a sweep that was killed has left. */
async function isLeftOver(imagesDir: string, name: string, now: number): Promise<boolean> {
  if (![going, ".partial", ".making"].some((end) => name.endsWith(end))) return false;
  const facts = await stat(join(imagesDir, name)).catch(() => undefined);
  // Of what was renamed only the change time is young.
  return facts !== undefined && now - facts.ctimeMs >= unfinishedMs;
}

/** Stays out of whatever is mounted there. */
async function removeAll(path: string): Promise<void> {
  await runProgram("rm", ["-rf", "--one-file-system", path]);
}
