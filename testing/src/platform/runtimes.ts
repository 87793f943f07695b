import { spawnSync } from "node:child_process";
import { delimiter, join } from "node:path";

/** A program on PATH that runs JavaScript. */
export interface Runtime {
  readonly name: string;
  /** Path of the program; undefined if this host has none. */
  readonly path: string | undefined;
}

/** The first `command` on PATH whose version begins so. */
export function findRuntime(name: string, command: string, version: string): Runtime {
  const candidates = (process.env.PATH ?? "").split(delimiter).map((directory) => join(directory, command));
  const path = candidates.find((candidate) => {
    const { stdout } = spawnSync(candidate, ["--version"], { encoding: "utf8" });
    // The output is null if there is no such program.
    return stdout?.startsWith(version);
  });
  return { name, path };
}
