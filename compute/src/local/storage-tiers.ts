import { basename, dirname, isAbsolute, join } from "node:path";
import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import { mkdir, readlink, rm, symlink } from "node:fs/promises";
import { hasCode } from "@holdfast/common/system-error.ts";
import { ComputeFailure } from "../compute-failure.ts";
import { namesIn } from "./atomic-file.ts";

/** Storage tiers of this host. */
export interface StorageTiers {
  readonly names: readonly string[];
  /** The tier of prepared disks. */
  readonly first: string;
  /** Directory of a tier's data disks; undefined if they are in the directories of their machines. */
  directoryOf(tier: string): string | undefined;
}

/**
 * Parses entries such as `maxiops=/mnt/nvme`, or `maxiops` for a tier whose disks are in the directories of their
 * machines. Throws for a directory that does not exist: creating it would hide a missing mount.
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

/** Reason why no machine of this tier can be on this host; undefined if one can. */
export function tierRefusal({ names }: StorageTiers, tier: string): string | undefined {
  if (names.includes(tier)) return undefined;
  return `This host has no storage of the tier ${tier}: HOLDFAST_STORAGE_TIERS names ${names.join(", ")}.`;
}

/** Throws ComputeFailure for a tier that this host does not have. */
export function requireTier(tiers: StorageTiers, tier: string): void {
  const refused = tierRefusal(tiers, tier);
  if (refused !== undefined) throw new ComputeFailure(refused);
}

/** Directory of the data disks in a tier's directory. */
export function disksIn(tierDirectory: string): string {
  return join(tierDirectory, "holdfast");
}

/**
 * Location for the file or directory of this path: the path itself, or a new name in a tier's directory with a link to
 * it. The link is created before the file, so that after a crash every file in a tier's directory has a link.
 */
export async function createLocation(tierDirectory: string | undefined, path: string): Promise<string> {
  if (tierDirectory === undefined) return path;
  const directory = disksIn(tierDirectory);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const location = join(directory, randomUUID());
  await symlink(location, path);
  return location;
}

/** Location that `createLocation` chose for this path. */
export async function locationOf(path: string): Promise<string> {
  try {
    return await readlink(path);
  } catch (error) {
    if (hasCode(error, "ENOENT") || hasCode(error, "EINVAL")) return path;
    throw error;
  }
}

/** Removes a file or directory of `createLocation`: its snapshots first, the link to it last. */
export async function removeLocated(path: string): Promise<void> {
  const location = await locationOf(path);
  const directory = dirname(location);
  for (const name of await namesIn(directory)) {
    if (name.startsWith(`${basename(location)}.`)) await rm(join(directory, name), { force: true });
  }
  await rm(location, { recursive: true, force: true });
  await rm(path, { recursive: true, force: true });
}
