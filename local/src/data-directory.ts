import { existsSync, readdirSync, realpathSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { createBlockClaims } from "./block-claims.ts";
import { readJson } from "./files.ts";
import { daemonOwners } from "./incus-daemon.ts";
import type { Installation } from "./installation.ts";
import { installationProcesses } from "./installation-processes.ts";
import { type Layout, layoutOf } from "./layout.ts";
import type { UpDeps } from "./with-platform.ts";

/** The installation that the directory has the mark of, `installation.json`; undefined for any other directory. */
export function markOf(directory: string): Installation | undefined {
  try {
    const found = readJson<Partial<Installation> | null>(layoutOf(directory).installation);
    const isMark = typeof found?.id === "string" && /^127\.\d+$/.test(found.loopback_block ?? "");
    return isMark ? (found as Installation) : undefined;
  } catch {
    // It is not JSON, the path is below a file, or it is another user's.
    return undefined;
  }
}

/** Data directories near a directory, which are not the directory itself. */
export interface NearDirectories {
  /** Directories below it that have a mark, or processes. */
  readonly below: readonly string[];
  /** Directories below it that were removed by hand and have remains on this host. */
  readonly removed: readonly string[];
  /** The directories above it that have a mark. */
  readonly above: readonly string[];
}

/** Finds data directories near a directory, by claims, daemons, processes and marks. */
export function nearDirectories(
  directory: string,
  { registryDir, clock }: Pick<UpDeps, "registryDir" | "clock">,
): NearDirectories {
  const real = realPathOf(directory);
  const running = new Set(installationProcesses().map((each) => each.directory));
  const children = namesIn(directory).map((name) => join(directory, name));
  const known = new Set([
    ...createBlockClaims(registryDir, clock.now).directories(),
    ...daemonOwners().keys(),
    ...running,
    ...children.filter((each) => markOf(each) !== undefined),
  ]);
  const found = [...known].filter((each) => realPathOf(each).startsWith(real === sep ? sep : real + sep)).toSorted();
  const isActive = (each: string) => running.has(each) || markOf(each) !== undefined;
  const above: string[] = [];
  for (let at = real; dirname(at) !== at; at = dirname(at))
    if (markOf(dirname(at)) !== undefined) above.push(dirname(at));
  return { below: found.filter(isActive), removed: found.filter((each) => !isActive(each)), above };
}

/** Names of compute providers and of the command line in the data directory. */
const extraNames = ["running", "addresses", "public-addresses", "code", "sockets", "locks", "packed", "client"];

/** Suffix of a file that replaces another one. */
const partialSuffix = /\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Removes what the platform made in a directory with its mark, and the directory if it is empty then. The mark is
 * removed last, so that a crash leaves a data directory. Returns the names of other files, which stay.
 */
export function removeFiles({ root, installation, ...paths }: Layout): string[] {
  if (markOf(root) === undefined) throw new Error(`${root} has no mark of an installation`);
  const own = new Set([...Object.values(paths), ...extraNames.map((name) => join(root, name))]);
  for (const path of namesIn(root).map((name) => join(root, name))) {
    const replaced = path.replace(partialSuffix, "");
    const isPartial = replaced !== path && (own.has(replaced) || replaced === installation);
    if (own.has(path) || isPartial) rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  }
  rmSync(installation, { force: true });
  const others = namesIn(root);
  if (others.length === 0) rmdirSync(realPathOf(root));
  return others;
}

/** Names in a directory; none if it does not exist, or is another user's. */
export function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory).toSorted();
  } catch {
    return [];
  }
}

function realPathOf(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}
