import { readConfig, text, type ValuesOf } from "@holdfast/common/config.ts";
import type { FleetSettings } from "#fleet/fleet-settings.ts";
import type { KernelSettings } from "#kernel/kernel-settings.ts";
import { gathered, type SystemDeclaration } from "#kernel/system-declaration.ts";
import type { AppSettings } from "#app/app-settings.ts";
import type { InferenceSettings } from "#inference/inference-system.ts";
import { type ApiSettings, apiSettings } from "./api-settings.ts";
import { systems } from "./systems.ts";

const logSettings = { logLevel: text("HOLDFAST_LOG_LEVEL", "debug, info, warn or error", "info") } as const;

/** What the controller reads itself; each system reads its own. */
export type ControllerConfig = KernelSettings &
  ApiSettings &
  Pick<FleetSettings, "agentListen"> &
  Partial<Pick<AppSettings, "issuerAddresses" | "issuerPort"> & Pick<InferenceSettings, "inferenceAddresses">> &
  ValuesOf<typeof logSettings>;

/** Every setting of a controller with these systems, as they declare them. */
function settingsOf(declared: readonly SystemDeclaration[]) {
  return gathered([...declared.map(({ settings = {} }) => settings), apiSettings, logSettings]);
}

/** The reference page in the docs is printed from here. */
export const settings = settingsOf(systems);

/** Throws with all problems together. What systems declare is among the values, for them to read. */
export function readControllerConfig(
  environment: Readonly<Record<string, string | undefined>>,
  declared: readonly SystemDeclaration[] = systems,
): ControllerConfig {
  return readConfig(settingsOf(declared), environment) as ControllerConfig;
}
