import type { Engine } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { EngineProfile } from "./engine-profile.ts";
import * as engines from "./engines.ts";

/** An engine of the catalog without a profile does not compile. */
const profiles: Readonly<Record<Engine, EngineProfile>> = engines;

/** Throws for an engine that the catalog lacks; services are validated when they are created. */
export function engineProfileOf(engine: string): EngineProfile {
  const profile = Object.hasOwn(profiles, engine) ? profiles[engine as Engine] : undefined;
  if (profile === undefined) throw new Error(`${engine} is not an engine of the catalog`);
  return profile;
}
