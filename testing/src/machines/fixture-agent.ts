import { randomUUID } from "node:crypto";
import { createAgent } from "@holdfast/agent/agent.ts";
import { jobProgramOf } from "@holdfast/agent/backup/job-component.ts";
import { settings } from "@holdfast/agent/config.ts";
import { createControlGroup } from "@holdfast/agent/os/control-group.ts";
import { connectKeeper } from "@holdfast/agent/os/keeper-client.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { readConfig } from "@holdfast/common/config.ts";
import { createLog } from "@holdfast/common/log.ts";
import { openReceivedCode } from "@holdfast/agent/upgrade/received-code.ts";
import { workloadKinds } from "@holdfast/agent/workload/workload-kinds.ts";
import type { EngineDriver } from "@holdfast/agent/engines/engine-driver.ts";
import { createFixtureDriver } from "../engines/fixture-driver.ts";
import { createFixtureWorkload } from "./fixture-workload.ts";
import { fixturePeers } from "../engines/fixture-peers.ts";

/** The agent as main.ts runs it, with the fixture driver as its only engine, and the fixture workload. */
const config = readConfig(settings, process.env);
const end = new AbortController();
process.on("SIGTERM", () => end.abort());
const keeper = await connectKeeper(config.keeperSocket, () => process.exit(1), end.signal);
const driver = createFixtureDriver(async (signal) => {
  await keeper.order({ op: "signal", name: "engine", signal });
});
const drivers: Readonly<Record<string, EngineDriver>> = {
  fixture: driver,
  "fixture-peers": { ...driver, topology: "peers", peers: fixturePeers },
};
await keeper.order({ op: "claim", run: config.run });
const { stateDir, runDir, dataDir, softwareRoot } = config;
const agent = await createAgent({
  machineId: config.machineId,
  machineStart: config.machineStart,
  directories: { stateDir, runDir, dataDir, softwareRoot },
  controllers: config.controllers,
  keeper,
  controlGroup: createControlGroup(config.cgroupDir),
  networkInterface: config.networkInterface,
  code: await openReceivedCode(stateDir, process.argv[1] ?? ""),
  predecessor: undefined,
  workloads: {
    ...workloadKinds({ jobProgram: jobProgramOf(process.argv[1] ?? ""), driverOf: async (engine) => drivers[engine] }),
    fixture: createFixtureWorkload,
  },
  sessionId: randomUUID(),
  clock: systemClock,
  random: Math.random,
  log: createLog("agent", config.logLevel),
});
await agent.run(end.signal);
process.exit(0);
