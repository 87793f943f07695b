import type { Engine } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { EngineConsole } from "./engine-console.ts";
import * as engines from "./engines.ts";

const consoles: Readonly<Partial<Record<Engine, EngineConsole>>> = engines;

/** The query console of an engine; undefined for an engine without one. */
export function engineConsoleOf(engine: string): EngineConsole | undefined {
  return Object.hasOwn(consoles, engine) ? consoles[engine as Engine] : undefined;
}
