import { join } from "node:path";
import { namesIn } from "./atomic-file.ts";
import { type MachinePaths, machinePaths } from "./machine-paths.ts";

const prefix = "making-";

/** Where a spare of this number is made: in the shape of a machine, among the spares of its kind. */
export function makingPaths(kindDirectory: string, number: number): MachinePaths {
  return pathsOf(kindDirectory, `${prefix}${number}`);
}

/** Spares of one kind that are being made, or that somebody who was killed has not finished. */
export async function makingsOf(kindDirectory: string): Promise<MachinePaths[]> {
  const names = await namesIn(kindDirectory);
  return names.filter((name) => name.startsWith(prefix)).map((name) => pathsOf(kindDirectory, name));
}

/** The same of every kind. */
export async function makingsIn(sparesDirectory: string): Promise<MachinePaths[]> {
  const kinds = await namesIn(sparesDirectory);
  return (await Promise.all(kinds.map((kind) => makingsOf(join(sparesDirectory, kind))))).flat();
}

function pathsOf(kindDirectory: string, name: string): MachinePaths {
  const directory = join(kindDirectory, name);
  return machinePaths(directory, join(directory, "run"));
}
