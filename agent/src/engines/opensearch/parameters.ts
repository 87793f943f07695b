import type { Instance } from "../engine-driver.ts";
import { EngineRefused } from "../engine-errors.ts";
import { call, OpensearchRefusal } from "./api.ts";
import { putSettings } from "./membership.ts";
import { liveParameters, parametersAtStart } from "./settings.ts";

/** Values that this member, and its cluster, run with: those of the catalog, and the platform's own. */
async function runningSettings(instance: Instance, signal: AbortSignal): Promise<Map<string, string>> {
  const path = "/_cluster/settings?include_defaults=true&flat_settings=true";
  const { defaults, persistent, transient } = (await call(instance, { method: "GET", path }, signal)) as Record<
    "defaults" | "persistent" | "transient",
    Record<string, unknown> | undefined
  >;
  const all = { ...defaults, ...persistent, ...transient };
  return new Map(Object.entries(all).map(([name, value]) => [name, String(value)]));
}

/** The catalog's parameters as this member runs with them. */
export async function runningParameters(instance: Instance, signal: AbortSignal): Promise<Map<string, string>> {
  const running = await runningSettings(instance, signal);
  const names = [...liveParameters(instance), ...parametersAtStart(instance)].map(([name]) => name);
  return new Map(names.map((name) => [name, running.get(name) ?? ""]));
}

/** Applies live parameters to the cluster. Throws EngineRefused for a value that it rejects. */
export async function applyParameters(instance: Instance, signal: AbortSignal): Promise<void> {
  const running = await runningSettings(instance, signal);
  const changed = liveParameters(instance).filter(([name, value]) => running.get(name) !== value);
  if (changed.length === 0) return;
  try {
    await putSettings(instance, Object.fromEntries(changed), signal);
  } catch (error) {
    if (error instanceof OpensearchRefusal && error.status === 400)
      throw new EngineRefused(error.message, { cause: error });
    throw error;
  }
}
