import type { PluginRequest } from "./artifact.ts";

/** Plugins that the operator of a host adds to the images of a recipe. */
export interface Addition {
  readonly plugins: readonly PluginRequest[];
  /** Reason why no image can be built with them, with the file and the remedy; then there are no plugins. */
  readonly fault?: string;
}

/** A directory from which the images of a recipe get plugins. */
export interface PluginSource {
  /** Environment variable with the directory's path; without it the images get none. */
  readonly variable: `HOLDFAST_${string}`;
  /** Description of the setting. */
  readonly description: string;
  /** Reads and checks the plugins. Never throws for a directory or file that cannot be used: it is a fault. */
  read(directory: string): Promise<Addition>;
}
