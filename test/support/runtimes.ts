import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** A program on PATH that runs JavaScript. */
export interface Runtime {
  readonly name: string;
  /** Undefined when there is none here. */
  readonly path: string | undefined;
}

/** The first `command` on PATH whose version begins so. */
export function findRuntime(name: string, command: string, version: string): Runtime {
  const candidates = (process.env.PATH ?? "").split(delimiter).map((directory) => join(directory, command));
  const path = candidates.find(
    (candidate) => existsSync(candidate) && execFileSync(candidate, ["--version"]).toString().startsWith(version),
  );
  return { name, path };
}
