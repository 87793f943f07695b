import type { AdditionSource } from "./addition-source.ts";
import { mongodbPackages } from "./mongodb-packages.ts";
import { opensearchPlugins } from "./opensearch-plugins.ts";
import type { Recipe, Software } from "./recipe.ts";
import { apps } from "./recipes/apps.ts";
import { files } from "./recipes/files.ts";
import { kafka } from "./recipes/kafka.ts";
import { mongodb } from "./recipes/mongodb.ts";
import { mongod } from "./recipes/mongodb-server.ts";
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
  mongod,
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

/** Directories of operators by recipe. */
export const additionSources = { opensearch: opensearchPlugins, mongod: mongodbPackages } as const satisfies Partial<
  Record<RecipeName, AdditionSource>
>;

/** Environment variable of such a directory. */
export type AdditionVariable = (typeof additionSources)[keyof typeof additionSources]["variable"];

/** Requested packages of an image, of both suites. */
export function packagesOf({ packages, beside }: Recipe): string[] {
  return [...packages, ...(beside?.packages ?? [])];
}

/** Name of the program's server in this version; for a version that no image has, the one of the first version. */
export function executableOf(program: Program, version: string): string {
  const all = recipeNames.flatMap((name) => recipes[name].software).filter((entry) => entry.program === program);
  const found = all.find((entry) => entry.version === version) ?? all[0];
  if (found === undefined) throw new Error(`no image has ${program}`);
  return found.executable;
}
