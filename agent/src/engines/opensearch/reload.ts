import type { Instance } from "../engine-driver.ts";
import { applyAllowLists, applyCertificate } from "../front/front-commands.ts";
import { convergeRoles } from "./access.ts";
import { frontOf } from "./front.ts";
import { applyParameters } from "./parameters.ts";

/**
 * Applies changed settings to the running engine, the allow-list first, so that forbidden sessions end without delay.
 * Only the front has a certificate of the platform. Throws EngineRefused for a parameter that the engine rejects.
 */
export async function reload(instance: Instance, signal: AbortSignal): Promise<void> {
  await applyAllowLists(frontOf(instance), signal);
  await applyCertificate(frontOf(instance), signal);
  await convergeRoles(instance, signal);
  await applyParameters(instance, signal);
}
