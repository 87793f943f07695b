import { accessSync, constants, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { executableOf, type Program } from "./catalog.ts";
import type { Launch, LaunchOptions } from "./in-image.ts";
import { inImage, onHost } from "./in-image.ts";
import { findSoftware } from "./node-image.ts";

/** An installed program that the platform itself runs: etcd, or the history database. */
export interface PlatformProgram {
  readonly source: "image" | "host";
  /** Path of an executable, for `argv[0]` of `launch`. */
  executable(name: string): string;
  launch(options: LaunchOptions): Launch;
}

/** The program in an image, else the host's, else undefined. */
export function findPlatformProgram(
  imagesDir: string,
  program: Program,
  version: string,
  environment: Readonly<Record<string, string | undefined>>,
): PlatformProgram | undefined {
  const found = findSoftware(imagesDir, program, version);
  if (found !== undefined) {
    return {
      source: "image",
      executable: (name) => join(found.software, "bin", name),
      launch: (options) => inImage(found.image.root, options),
    };
  }
  const host = findHostEngines(program, version, environment)[0];
  if (host === undefined) return undefined;
  return { source: "host", executable: (name) => join(host.path, "bin", name), launch: onHost };
}

/** An engine that the host has installed, as an alternative to an image. */
export interface HostEngine {
  readonly program: Program;
  /** Major version, if the path has it (PostgreSQL); undefined if only the program knows its version. */
  readonly version: string | undefined;
  /** Directory with the programs in `bin`. */
  readonly path: string;
}

/**
 * Engines that the host has installed, with the server program of the `requested` version: Debian's versioned
 * PostgreSQL directories first, the newest before older ones, then PATH.
 */
export function findHostEngines(
  program: Program,
  requested: string,
  environment: Readonly<Record<string, string | undefined>>,
  versionedRoot = "/usr/lib/postgresql",
): HostEngine[] {
  const found: HostEngine[] = [];
  const executable = executableOf(program, requested);
  if (program === "postgresql") {
    const versions = list(versionedRoot).filter((name) => /^\d+$/.test(name));
    for (const version of versions.sort((a, b) => Number(b) - Number(a))) {
      const path = join(versionedRoot, version);
      if (isExecutable(join(path, "bin", executable))) found.push({ program, version, path });
    }
  }
  for (const directory of (environment["PATH"] ?? "").split(":")) {
    if (directory === "" || !isExecutable(join(directory, executable))) continue;
    found.push({ program, version: undefined, path: dirname(directory) });
  }
  return found;
}

function list(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    // No such directory: nothing is installed there.
    return [];
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
