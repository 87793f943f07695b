import type { Engine } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { EngineConsole } from "./engine-console.ts";
import * as engines from "./engines.ts";

const consoles: Readonly<Partial<Record<Engine, EngineConsole>>> = engines;

/** Undefined for an engine without a query console. */
export function engineConsoleOf(engine: string): EngineConsole | undefined {
  return Object.hasOwn(consoles, engine) ? consoles[engine as Engine] : undefined;
}
