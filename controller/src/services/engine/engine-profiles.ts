import type { Engine } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { EngineProfile } from "./engine-profile.ts";
import * as engines from "./engines.ts";

/** Profiles by engine. The type requires a profile for each engine of the catalog. */
const profiles: Readonly<Record<Engine, EngineProfile>> = engines;

/** The profile of an engine. Throws for an unknown engine, because services are validated when they are created. */
export function engineProfileOf(engine: string): EngineProfile {
  const profile = Object.hasOwn(profiles, engine) ? profiles[engine as Engine] : undefined;
  if (profile === undefined) throw new Error(`${engine} is not an engine of the catalog`);
  return profile;
}
