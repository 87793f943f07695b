import { randomBytes } from "node:crypto";
import type { Engine } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { pipeProgram } from "../os/pipe-program.ts";
import { runProgram } from "../os/program.ts";
import type { EngineDeps } from "./engine-deps.ts";
import type { EngineDriver } from "./engine-driver.ts";

/** A missing engine is a compile error. Drivers are loaded on demand: an agent runs one engine and starts fast. */
const loaders = {
  postgresql: async (deps) => (await import("./postgresql/driver.ts")).createPostgresqlDriver(deps),
  valkey: async (deps) => (await import("./valkey/driver.ts")).createValkeyDriver(deps),
} satisfies Record<Engine, (deps: EngineDeps) => Promise<EngineDriver>>;

/** The driver of an engine. It runs programs that are installed where this process runs. */
export function loadDriver(engine: Engine, runAsEngine: EngineDeps["runAsEngine"]): Promise<EngineDriver> {
  return loaders[engine]({ run: runProgram, runAsEngine, pipe: pipeProgram, randomBytes });
}

/** True if there is a driver with this name. */
export function isEngine(name: string): name is Engine {
  return Object.hasOwn(loaders, name);
}
