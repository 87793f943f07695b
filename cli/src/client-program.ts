import { accessSync, constants, existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import type { EngineClient } from "./clients/engine-client.ts";
import { UsageError } from "./exit-code.ts";

/** A program to start, with the arguments that precede the caller's. */
export interface ClientProgram {
  readonly command: string;
  readonly args: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Finds an engine's client, such as psql, on the host or else in a node image. Throws UsageError when neither has it.
 */
export function findClientProgram(
  { programs, versionsIn }: Pick<EngineClient, "programs" | "versionsIn">,
  environment: Environment,
): ClientProgram {
  for (const name of programs) {
    const found = onPath(name, environment.PATH ?? "");
    if (found !== undefined) return { command: found, args: [] };
  }
  for (const root of imageRoots(environment)) {
    const found = programs.map((name) => insideImage(root, name, versionsIn)).find((program) => program !== undefined);
    if (found !== undefined) return found;
  }
  throw new UsageError(`${programs[0]} is not installed here, and no node image has it`);
}

function onPath(name: string, path: string): string | undefined {
  return path
    .split(delimiter)
    .filter((directory) => directory !== "")
    .map((directory) => join(directory, name))
    .find(isExecutable);
}

function imageRoots(environment: Environment): string[] {
  const cache = environment.HOLDFAST_CACHE ?? join(environment.HOME ?? homedir(), ".cache", "holdfast");
  return subdirectories(join(cache, "images"));
}

/**
 * A program of an image, started by the image's loader with its libraries; it needs no privileges and sees the host's
 * files.
 */
function insideImage(root: string, name: string, versionsIn: string | undefined): ClientProgram | undefined {
  const versions = versionsIn === undefined ? [] : subdirectories(join(root, versionsIn));
  const versioned = versions.map((directory) => join(directory, "bin", name));
  const program = [...versioned, join(root, "usr/bin", name)].find(isExecutable);
  const libraries = subdirectories(join(root, "usr/lib")).find((directory) => directory.endsWith("-linux-gnu"));
  if (program === undefined || libraries === undefined) return undefined;
  const loader = readdirSync(libraries).find((file) => /^ld-linux-.*\.so\.\d+$/.test(file));
  if (loader === undefined) return undefined;
  return { command: join(libraries, loader), args: ["--library-path", libraries, program] };
}

function subdirectories(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(directory, entry.name));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error) return false;
    throw error;
  }
}
