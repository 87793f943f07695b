import { basename, dirname, isAbsolute, join } from "node:path";
import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import { mkdir, readlink, rm, symlink } from "node:fs/promises";
import { hasCode } from "@holdfast/common/system-error.ts";
import { ComputeFailure } from "../compute-failure.ts";
import { namesIn } from "./atomic-file.ts";

/** Tiers of storage that this host has. */
export interface StorageTiers {
  readonly names: readonly string[];
  /** The one that data disks are made ahead in. */
  readonly first: string;
  /** Where data disks of a tier are; undefined beside everything else of their machines. */
  directoryOf(tier: string): string | undefined;
}

/**
 * Reads `maxiops=/mnt/nvme`, or `maxiops` alone for a tier that has no place of its own. Throws for a directory that is not
 * there: to make it would hide that nothing is mounted.
 */
export function readStorageTiers(entries: readonly string[]): StorageTiers {
  const directories = new Map<string, string | undefined>();
  for (const entry of entries) {
    const [name = "", ...rest] = entry.split("=");
    const directory = rest.length === 0 ? undefined : rest.join("=");
    if (name === "" || directories.has(name)) throw new Error(`${entry}: the tier has no name, or is named twice`);
    if (directory !== undefined && !isDirectory(directory)) throw new Error(`${entry}: there is no such directory`);
    directories.set(name, directory);
  }
  const names = [...directories.keys()];
  const [first] = names;
  if (first === undefined) throw new Error("no storage tier is named");
  return { names, first, directoryOf: (tier) => directories.get(tier) };
}

function isDirectory(path: string): boolean {
  return isAbsolute(path) && statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** Why no machine of this tier can be here; undefined when one can. */
export function tierRefusal({ names }: StorageTiers, tier: string): string | undefined {
  if (names.includes(tier)) return undefined;
  return `This host has no storage of the tier ${tier}: HOLDFAST_STORAGE_TIERS names ${names.join(", ")}.`;
}

/** Throws ComputeFailure for a tier that this host has not. */
export function requireTier(tiers: StorageTiers, tier: string): void {
  const refused = tierRefusal(tiers, tier);
  if (refused !== undefined) throw new ComputeFailure(refused);
}

/** Where the data disks in a tier's directory are. */
export function disksIn(tierDirectory: string): string {
  return join(tierDirectory, "holdfast");
}

/**
 * Where to make the file or directory that is to be at this path: there, or in a tier's directory with a link to it. The link
 * is first, so that nothing is ever there that nothing leads to.
 */
export async function placeIn(tierDirectory: string | undefined, path: string): Promise<string> {
  if (tierDirectory === undefined) return path;
  const directory = disksIn(tierDirectory);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const place = join(directory, randomUUID());
  await symlink(place, path);
  return place;
}

/** Where the file or directory is that was made by `placeIn` for this path. */
export async function placeOf(path: string): Promise<string> {
  try {
    return await readlink(path);
  } catch (error) {
    if (hasCode(error, "ENOENT") || hasCode(error, "EINVAL")) return path;
    throw error;
  }
}

/** Removes a file or directory that was made by `placeIn`: what belongs to it first, and what leads to it last. */
export async function removePlaced(path: string): Promise<void> {
  const place = await placeOf(path);
  const directory = dirname(place);
  for (const name of await namesIn(directory)) {
    if (name.startsWith(`${basename(place)}.`)) await rm(join(directory, name), { force: true });
  }
  await rm(place, { recursive: true, force: true });
  await rm(path, { recursive: true, force: true });
}
