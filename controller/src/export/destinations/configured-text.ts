import { lookUp } from "@holdfast/common/look-up.ts";
import type { Configuration } from "../metrics-export.ts";

/** The text under a key that a checked configuration has to have. */
export function configuredText(configuration: Configuration, key: string): string {
  const value = lookUp(configuration, key);
  if (typeof value !== "string") throw new Error(`the configuration has no text ${key}`);
  return value;
}

/** The same of a URL that paths are put behind. */
export function configuredBase(configuration: Configuration, key = "endpoint"): string {
  return configuredText(configuration, key).replace(/\/+$/, "");
}
