import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { HelloSchema, ObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { EngineDriver } from "./engines/engine-driver.ts";
import { bootIdOf } from "./host/boot-id.ts";
import type { ControlGroup } from "./host/control-group.ts";
import type { KeeperClient } from "./host/keeper-client.ts";
import { createEngineProcess, engineComponent } from "./instance/engine-process.ts";
import { createInstanceFiles, type Directories } from "./instance/instance-files.ts";
import { createInstanceRound } from "./instance/instance-round.ts";
import { createInstanceStatus } from "./instance/instance-status.ts";
import { createInstanceSupervisor } from "./instance/instance-supervisor.ts";
import { createLogReader } from "./instance/log-reader.ts";
import { createMemoryWatch } from "./instance/memory-watch.ts";
import { createProbes } from "./instance/probes.ts";
import { createServerCertificate } from "./instance/server-certificate.ts";
import { openJournal } from "./journal/journal.ts";
import { createUplink, type Uplink } from "./session/uplink.ts";
import { handlers } from "./tasks/index.ts";
import { TaskFailed } from "./tasks/task-failed.ts";
import { createTaskRunner } from "./tasks/task-runner.ts";

export interface AgentDeps {
  readonly machineId: string;
  readonly machineStart: string;
  readonly directories: Directories;
  readonly controllers: readonly string[];
  readonly keeper: KeeperClient;
  readonly controlGroup: ControlGroup;
  /** Loads an engine's driver when it is first needed; undefined for an engine that there is none for. */
  readonly driverOf: (engine: string) => Promise<EngineDriver | undefined>;
  readonly sessionId: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

export interface Agent {
  /** Runs until the signal. The engine goes on without it. */
  run(signal: AbortSignal): Promise<void>;
}

const agentVersion = "0.1.0";
const observationEveryMs = 15_000;
const mostUnsent = 200;

/** Puts the agent together: the instance and its probes on one side, the controllers' stream and tasks on the other. */
export async function createAgent(deps: AgentDeps): Promise<Agent> {
  const { machineId, machineStart, directories, controllers, keeper, driverOf, sessionId, clock, random, log } = deps;
  const memory = createMemoryWatch(deps.controlGroup, clock.now);
  const journal = await openJournal(join(directories.stateDir, "journal"), clock.now);
  const files = createInstanceFiles(directories);
  const bootId = bootIdOf(machineStart);
  /** Results that came while no session was open; the journal has the durable ones in any case. */
  const unsent: TaskResult[] = [];
  let parse: EngineDriver["parseLog"] | undefined;

  const status = createInstanceStatus(clock.now, () => tellSoon());
  const certificate = createServerCertificate({
    path: join(directories.stateDir, "instance", "tls"),
    channel: () => uplink.channel(),
    connected: (signal) => uplink.connected(signal),
    authorityGeneration: () => uplink.authorityGeneration,
    now: clock.now,
  });
  const logs = createLogReader({ component: engineComponent, path: files.log, parse: () => parse });
  const round = createInstanceRound({
    files,
    process: createEngineProcess(keeper, files.log),
    certificate,
    status,
    logs,
    memory,
    log,
    async driverOf(engine) {
      const driver = await driverOf(engine);
      parse = driver?.parseLog.bind(driver);
      return driver;
    },
  });
  const probes = createProbes({ status, target: round.engine, certificate, memory });
  const hurryProbes = probes.hurry;
  const supervisor = createInstanceSupervisor({ files, keeper, round, certificate, status, hurryProbes, clock, log });

  const runner = createTaskRunner({
    journal,
    handlers,
    surroundings: {
      supervisor,
      logs,
      async engine() {
        const engine = round.engine();
        if (engine === undefined) throw new TaskFailed("not_ready", `The engine is ${status.state}.`, true);
        return engine;
      },
      async channel() {
        const channel = uplink.channel();
        if (channel === undefined) throw new TaskFailed("failed", "no controller is connected", true);
        return channel;
      },
    },
    sendResult(value) {
      if (!uplink.send({ case: "taskResult", value }))
        unsent.splice(0, unsent.length, ...unsent.slice(-mostUnsent), value);
    },
    sendProgress: (taskId, step, progressPct) =>
      void uplink.send({
        case: "taskProgress",
        value: { $typeName: "holdfast.agent.v1.TaskProgress", taskId, step, progressPct },
      }),
    now: clock.now,
    log,
  });

  const uplink: Uplink = createUplink({
    stateDir: directories.stateDir,
    controllers,
    hello: () =>
      create(HelloSchema, {
        machineId,
        agentVersion,
        bootId,
        terms: Object.fromEntries(journal.terms),
        openTasks: journal.openTasks(),
        sessionId,
      }),
    handlers: { onTask: runner.accept, onCancel: runner.cancel, onResultAck: runner.acknowledged },
    onOpen(session) {
      for (const value of unsent.splice(0)) session.send({ case: "taskResult", value });
      for (const value of journal.unacknowledged()) session.send({ case: "taskResult", value });
      tell();
      // The machine's certificate may be one of new authorities: the engine's follows.
      supervisor.look();
    },
    clock,
    random,
    log,
  });

  let telling: NodeJS.Immediate | undefined;

  /** Several changes of one moment are one observation. */
  function tellSoon(): void {
    telling ??= setImmediate(tell);
  }

  function tell(): void {
    clearImmediate(telling);
    telling = undefined;
    const instance = status.message();
    const value = create(ObservationSchema, { time: timestampFromMs(clock.now()), ...(instance && { instance }) });
    uplink.send({ case: "observation", value });
  }

  return {
    async run(signal) {
      const ticking = setInterval(tell, observationEveryMs);
      await Promise.all([uplink.run(signal), supervisor.run(signal), probes.run(signal)]);
      clearInterval(ticking);
      await journal.close();
    },
  };
}
