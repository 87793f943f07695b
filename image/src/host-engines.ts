import { accessSync, constants, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Program } from "./catalog.ts";

/** Where a program of the host is, as an alternative to the image's. */
export interface HostEngine {
  readonly program: Program;
  /** Major version where the path tells it (PostgreSQL), else undefined: ask the program. */
  readonly version: string | undefined;
  /** Directory whose `bin` has the programs. */
  readonly path: string;
}

const executables: Readonly<Record<Program, string>> = {
  postgresql: "postgres",
  valkey: "valkey-server",
  etcd: "etcd",
};

/** Engines installed on the host: Debian's versioned PostgreSQL directories first, newest first, then PATH. */
export function findHostEngines(
  program: Program,
  environment: Readonly<Record<string, string | undefined>>,
  versionedRoot = "/usr/lib/postgresql",
): HostEngine[] {
  const found: HostEngine[] = [];
  if (program === "postgresql") {
    const versions = list(versionedRoot).filter((name) => /^\d+$/.test(name));
    for (const version of versions.sort((a, b) => Number(b) - Number(a))) {
      const path = join(versionedRoot, version);
      if (isExecutable(join(path, "bin", "postgres"))) found.push({ program, version, path });
    }
  }
  for (const directory of (environment["PATH"] ?? "").split(":")) {
    if (directory === "" || !isExecutable(join(directory, executables[program]))) continue;
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
