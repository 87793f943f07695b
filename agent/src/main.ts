import { randomUUID } from "node:crypto";
import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { createLog } from "@holdfast/common/log.ts";
import { createAgent } from "./agent.ts";
import { settings } from "./config.ts";
import { isEngine, loadDriver } from "./engines/registry.ts";
import { createControlGroup } from "./host/control-group.ts";
import { createEnginePrograms } from "./host/engine-programs.ts";
import { connectKeeper } from "./host/keeper-client.ts";

const config = readConfig(settings, process.env);
const log = createLog("agent", config.logLevel).child({ machine: config.machineId });
const end = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => end.abort());

const keeper = await connectKeeper(
  config.keeperSocket,
  () => {
    // Without namespaces an agent can outlive its keeper; the next keeper starts its own.
    log.error("keeper is gone");
    process.exit(1);
  },
  end.signal,
);
const { stateDir, runDir, dataDir, softwareRoot } = config;
const runAsEngine = createEnginePrograms(keeper, stateDir);
const agent = await createAgent({
  machineId: config.machineId,
  machineStart: config.machineStart,
  directories: { stateDir, runDir, dataDir, softwareRoot },
  controllers: config.controllers,
  keeper,
  controlGroup: createControlGroup(config.cgroupDir),
  driverOf: async (engine) => (isEngine(engine) ? loadDriver(engine, runAsEngine) : undefined),
  sessionId: randomUUID(),
  clock: systemClock,
  random: Math.random,
  log,
});
// Whoever gives the machine its settings is not to wait for what is the same in each.
if (isEngine(config.engine)) await loadDriver(config.engine, runAsEngine);
log.info("agent ready", { startMs: Math.round(performance.now()) });
await agent.run(end.signal);
keeper.close();
