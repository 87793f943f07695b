import { opensearchPlugins } from "./opensearch-plugins.ts";
import type { PluginSource } from "./plugin-source.ts";
import type { Recipe, Software } from "./recipe.ts";
import { apps } from "./recipes/apps.ts";
import { files } from "./recipes/files.ts";
import { kafka } from "./recipes/kafka.ts";
import { mongodb } from "./recipes/mongodb.ts";
import { mysql } from "./recipes/mysql.ts";
import { opensearch } from "./recipes/opensearch.ts";
import { sid } from "./recipes/sid.ts";
import { trixie } from "./recipes/trixie.ts";
import { tsql } from "./recipes/tsql.ts";

/** Recipes by name. If several have the same version of a program, machines use the first of them. */
// biome-ignore format: a line a recipe, so that branches with different recipes merge
const all = {
  trixie,
  sid,
  mysql,
  kafka,
  tsql,
  mongodb,
  opensearch,
  apps,
  files,
} as const satisfies Readonly<Record<string, Recipe>>;

/** Name of a recipe, in lower-case letters: ids of its images begin with it. */
export type RecipeName = keyof typeof all;

/** A database engine, or a program of the platform itself. */
export type Program = (typeof all)[RecipeName]["software"][number]["program"];

/** The program of machines that run containers of users. */
export const appProgram = "app" satisfies Program;

export const recipes: Readonly<Record<RecipeName, Recipe>> = all;

export const recipeNames = Object.keys(recipes) as RecipeName[];

/** Recipe whose image has this version of a program; undefined if none has. */
export function recipeOf(program: string, version: string): RecipeName | undefined {
  return recipeNames.find((name) => softwareOf(name, program, version) !== undefined);
}

/** Undefined if images of the recipe do not have it. */
export function softwareOf(name: RecipeName, program: string, version: string): Software | undefined {
  return recipes[name].software.find((entry) => entry.program === program && entry.version === version);
}

/** Plugins of operators by recipe. */
export const pluginSources = { opensearch: opensearchPlugins } as const satisfies Partial<
  Record<RecipeName, PluginSource>
>;

/** Environment variable of a directory with plugins. */
export type PluginVariable = (typeof pluginSources)[keyof typeof pluginSources]["variable"];

/** Requested packages of an image, of both suites. */
export function packagesOf({ packages, beside }: Recipe): string[] {
  return [...packages, ...(beside?.packages ?? [])];
}

/** Name of the program's server, which is the same in all versions. */
export function executableOf(program: Program): string {
  const found = recipeNames.flatMap((name) => recipes[name].software).find((entry) => entry.program === program);
  if (found === undefined) throw new Error(`no image has ${program}`);
  return found.executable;
}
