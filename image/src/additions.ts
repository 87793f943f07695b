import { type PluginVariable, pluginSources, type RecipeName } from "./catalog.ts";
import type { Addition } from "./plugin-source.ts";

/** Additions of the operator by recipe. */
export type Additions = Readonly<Partial<Record<RecipeName, Addition>>>;

export const noAdditions: Additions = {};

/**
 * Reads the plugins of every recipe, once. `directoryOf` returns the value of a setting, which is empty without
 * plugins. Faults are part of the result, since machines that run need no plugin's file.
 */
export async function readAdditions(directoryOf: (variable: PluginVariable) => string): Promise<Additions> {
  const additions: { [recipe in RecipeName]?: Addition } = {};
  for (const recipe of Object.keys(pluginSources) as (keyof typeof pluginSources)[]) {
    const { variable, read } = pluginSources[recipe];
    const directory = directoryOf(variable);
    if (directory === "") continue;
    const addition = await read(directory);
    if (addition.plugins.length > 0 || addition.fault !== undefined) additions[recipe] = addition;
  }
  return additions;
}
