import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import type { Engine } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { createLog } from "@holdfast/common/log.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { HelloSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { createAgent } from "./agent.ts";
import { jobProgramOf } from "./backup/job-component.ts";
import { settings } from "./config.ts";
import type { EngineDriver } from "./engines/engine-driver.ts";
import { isEngine, loadDriver } from "./engines/drivers.ts";
import { checkJournal } from "./journal/journal.ts";
import { createControlGroup } from "./os/control-group.ts";
import { createEnginePrograms } from "./os/engine-programs.ts";
import { connectKeeper } from "./os/keeper-client.ts";
import { openReceivedCode } from "./upgrade/received-code.ts";
import { workloadKinds } from "./workload/workload-kinds.ts";
import { awaitTakeover, type Predecessor, connectStandby } from "./upgrade/takeover.ts";

const config = readConfig(settings, process.env);
const log = createLog("agent", config.logLevel).child({ machine: config.machineId });
watchProcessFaults({ role: "server", logFault: log.error, monotonicMs: systemClock.monotonicMs });
const end = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => end.abort());

const keeper = await connectKeeper(
  config.keeperSocket,
  () => {
    // Without namespaces an agent can outlive its keeper. The next keeper starts another agent.
    log.error("keeper has ended");
    process.exit(1);
  },
  end.signal,
);
const { stateDir, runDir, dataDir, softwareRoot } = config;
const code = await openReceivedCode(stateDir, process.argv[1] ?? "");
const runAsEngine = createEnginePrograms(keeper, stateDir);
const sessionId = randomUUID();
// Loaded in advance, so that neither the first settings nor a handover wait for it.
const drivers = new Map<Engine, Promise<EngineDriver>>();
/** Loads a driver once for the lifetime of the agent, since a driver may have open sessions. */
function driverOf(engine: Engine): Promise<EngineDriver> {
  const driver = drivers.get(engine) ?? loadDriver(engine, runAsEngine);
  drivers.set(engine, driver);
  return driver;
}
const preload = async () => void (isEngine(config.engine) && (await driverOf(config.engine)));
let predecessor: Predecessor | undefined;
if (config.part === "next") {
  await Promise.all([preload(), checkJournal(join(stateDir, "journal"))]);
  const hello = create(HelloSchema, {
    machineId: config.machineId,
    agentVersion: code.ownVersion.release,
    agentDigest: code.ownVersion.digest,
    keeperProtocol: keeper.protocol,
    sessionId,
    standby: true,
  });
  const controllers = [config.controller, ...config.controllers].filter((address) => address !== "");
  const channel = await connectStandby({ stateDir, controllers, hello, monotonicMs: systemClock.monotonicMs });
  log.info("agent ready to take over", { digest: code.ownVersion.digest });
  predecessor = await awaitTakeover(keeper, config.run, channel, end.signal);
} else await keeper.order({ op: "claim", run: config.run });
const agent = await createAgent({
  machineId: config.machineId,
  machineStart: config.machineStart,
  directories: { stateDir, runDir, dataDir, softwareRoot },
  controllers: config.controllers,
  keeper,
  controlGroup: createControlGroup(config.cgroupDir),
  networkInterface: config.networkInterface,
  code,
  predecessor,
  workloads: workloadKinds({
    jobProgram: jobProgramOf(process.argv[1] ?? ""),
    driverOf: async (engine) => (isEngine(engine) ? driverOf(engine) : undefined),
  }),
  sessionId,
  clock: systemClock,
  random: Math.random,
  log,
});
if (predecessor === undefined) await preload();
log.info("agent ready", { startMs: Math.round(performance.now()) });
await agent.run(end.signal);
keeper.close();
// Anything still pending ends with the process.
process.exit(0);
