import { join } from "node:path";
import { namesIn } from "./atomic-file.ts";
import { type MachinePaths, machinePaths } from "./machine-paths.ts";

const prefix = "making-";

/** Paths of an unfinished prepared disk, in the layout of a machine, in the directory of its kind. */
export function unfinishedPaths(kindDirectory: string, number: number): MachinePaths {
  return pathsOf(kindDirectory, `${prefix}${number}`);
}

/** Prepared disks of one kind that are being created, or that a killed process left unfinished. */
export async function unfinishedOf(kindDirectory: string): Promise<MachinePaths[]> {
  const names = await namesIn(kindDirectory);
  return names.filter((name) => name.startsWith(prefix)).map((name) => pathsOf(kindDirectory, name));
}

/** Unfinished disks of every kind. */
export async function unfinishedIn(preparedDirectory: string): Promise<MachinePaths[]> {
  const kinds = await namesIn(preparedDirectory);
  return (await Promise.all(kinds.map((kind) => unfinishedOf(join(preparedDirectory, kind))))).flat();
}

function pathsOf(kindDirectory: string, name: string): MachinePaths {
  const directory = join(kindDirectory, name);
  return machinePaths(directory, join(directory, "run"));
}
