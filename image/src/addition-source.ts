import type { DebRequest, PluginRequest } from "./artifact.ts";

/** Contents that the operator of a host adds to the images of a recipe. */
export interface Addition {
  readonly artifacts: readonly (PluginRequest | DebRequest)[];
  /** Reason why no image can be built with them, with the file and the remedy; then there are no artifacts. */
  readonly fault?: string;
}

/** A directory from which the images of a recipe get contents. */
export interface AdditionSource {
  /** Environment variable with the directory's path; without it the images get none. */
  readonly variable: `HOLDFAST_${string}`;
  /** Description of the setting. */
  readonly description: string;
  /** Reason why no image can be built without the directory; absent if the recipe is complete without it. */
  readonly missing?: string;
  /** Reads and checks the files. Never throws for a directory or file that cannot be used: it is a fault. */
  read(directory: string): Promise<Addition>;
}
