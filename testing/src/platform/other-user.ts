import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import type { PlatformOptions } from "./platform.ts";
import { asRoot, programDirectory, testUid } from "./platform-software.ts";

const checkout = join(import.meta.dirname, "..", "..", "..");

/**
 * Options of a platform that does not run as root, also where the tests do. It then runs as the tests' own user. Where
 * that user may not enter the home of root, it sees only the directories of it that a platform needs: checkout, Node
 * and cache.
 */
export function asOtherUser(): PlatformOptions {
  const directory = programDirectory("holdfast-system");
  if (!asRoot) return { directory };
  const cache = cacheDirectory(process.env);
  const needed = [checkout, dirname(process.execPath), cache].filter((path) => closedAbove(path) !== undefined);
  const closed = new Set(needed.map(closedAbove));
  const stageOf = (index: number) => `/mnt/${index}`;
  const script = [
    "mount -t tmpfs stage /mnt",
    ...needed.flatMap((path, index) => [`mkdir ${stageOf(index)}`, `mount --bind '${path}' ${stageOf(index)}`]),
    ...[...closed].map((path) => `mount -t tmpfs -o mode=755 other '${path}'`),
    ...needed.flatMap((path, index) => [`mkdir -p '${path}'`, `mount --bind ${stageOf(index)} '${path}'`]),
    'exec "$@"',
  ].join(" && ");
  const user = [`--reuid=${testUid}`, `--regid=${testUid}`, "--clear-groups", "--pdeathsig", "KILL"];
  return {
    directory,
    enter: ["unshare", "--mount", "sh", "-c", script, "sh", "setpriv", ...user],
    environment: { HOME: directory, HOLDFAST_CACHE: cache },
  };
}

/** The topmost directory of a path that other users may not enter; undefined if they may enter all. */
function closedAbove(path: string): string | undefined {
  const above = dirname(path);
  const higher = above === path ? undefined : closedAbove(above);
  return higher ?? ((statSync(path).mode & 0o001) === 0 ? path : undefined);
}
