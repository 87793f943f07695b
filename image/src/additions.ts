import type { Addition, AdditionSource } from "./addition-source.ts";
import { type AdditionVariable, additionSources, type RecipeName } from "./catalog.ts";

/** Additions of the operator by recipe. */
export type Additions = Readonly<Partial<Record<RecipeName, Addition>>>;

export const noAdditions: Additions = {};

/**
 * Reads the additions of every recipe, once. `directoryOf` returns the value of a setting, which is empty without any.
 * Faults are part of the result, since machines that run need no file of the operator.
 */
export async function readAdditions(directoryOf: (variable: AdditionVariable) => string): Promise<Additions> {
  const additions: { [recipe in RecipeName]?: Addition } = {};
  for (const recipe of Object.keys(additionSources) as (keyof typeof additionSources)[]) {
    const { variable, read } = additionSources[recipe];
    const directory = directoryOf(variable);
    if (directory === "") continue;
    const addition = await read(directory);
    if (addition.artifacts.length > 0 || addition.fault !== undefined) additions[recipe] = addition;
  }
  return additions;
}

/** Reason why no image of the recipe can be built with these additions; undefined if one can. */
export function faultOf(recipe: RecipeName, additions: Additions): string | undefined {
  const sources: Readonly<Partial<Record<RecipeName, AdditionSource>>> = additionSources;
  const addition = additions[recipe];
  return addition === undefined ? sources[recipe]?.missing : addition.fault;
}
