import { lookUp } from "@holdfast/common/look-up.ts";
import type { Configuration } from "../metrics-export.ts";

/** The text of a required key of a validated configuration. */
export function configuredText(configuration: Configuration, key: string): string {
  const value = lookUp(configuration, key);
  if (typeof value !== "string") throw new Error(`the configuration has no text ${key}`);
  return value;
}

/** The base URL of a key, without slashes at its end. */
export function configuredBase(configuration: Configuration, key = "endpoint"): string {
  return configuredText(configuration, key).replace(/\/+$/, "");
}
