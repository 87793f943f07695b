import { readConfig, text } from "@holdfast/common/config.ts";
import { providerSettings } from "@holdfast/compute/provider-settings.ts";

/** Settings of a host program. The settings of its compute provider are the same as a controller's. */
export const settings = {
  listen: text("HOLDFAST_HOST_LISTEN", "host:port that controllers dial"),
  stateDir: text("HOLDFAST_HOST_STATE_DIR", "Directory with the host's certificate, which the join created"),
  ...providerSettings,
  logLevel: text("HOLDFAST_LOG_LEVEL", "debug, info, warn or error", "info"),
} as const;

/** Throws with all problems together. */
export function readHostConfig(environment: Readonly<Record<string, string | undefined>>) {
  return readConfig(settings, environment);
}
