import { randomBytes } from "node:crypto";
import type { Engine } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { pipeProgram } from "../os/pipe-program.ts";
import { runProgram } from "../os/program.ts";
import type { EngineDeps } from "./engine-deps.ts";
import type { EngineDriver } from "./engine-driver.ts";

/** A missing engine is a compile error. Drivers are loaded on demand: an agent runs one engine and starts fast. */
const loaders = {
  postgresql: async () => (await import("./postgresql/driver.ts")).createPostgresqlDriver,
  mysql: async () => (await import("./mysql/driver.ts")).createMysqlDriver,
  kafka: async () => (await import("./kafka/driver.ts")).createKafkaDriver,
  valkey: async () => (await import("./valkey/driver.ts")).createValkeyDriver,
  files: async () => (await import("./files/driver.ts")).createFilesDriver,
  mongodb: async () => (await import("./mongodb/driver.ts")).createMongodbDriver,
  opensearch: async () => (await import("./opensearch/driver.ts")).createOpensearchDriver,
  tsql: async () => (await import("./tsql/driver.ts")).createTsqlDriver,
} satisfies Record<Engine, () => Promise<(deps: EngineDeps) => EngineDriver>>;

/** The driver of an engine. It runs programs that are installed where this process runs. */
export async function loadDriver(engine: Engine, runAsEngine: EngineDeps["runAsEngine"]): Promise<EngineDriver> {
  const create = await loaders[engine]();
  return create({ run: runProgram, runAsEngine, pipe: pipeProgram, randomBytes });
}

/** Loads the modules of every driver, and runs nothing of them. */
export async function loadDriverModules(): Promise<void> {
  await Promise.all(Object.values(loaders).map((load) => load()));
}

/** True if there is a driver with this name. */
export function isEngine(name: string): name is Engine {
  return Object.hasOwn(loaders, name);
}
