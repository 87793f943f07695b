import { freemem } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { HelloSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { createBackupParts } from "./backup/backup-parts.ts";
import type { EngineDriver } from "./engines/engine-driver.ts";
import { bootIdOf } from "./os/boot-id.ts";
import type { ControlGroup } from "./os/control-group.ts";
import type { KeeperClient } from "./os/keeper-client.ts";
import { createDataVersion } from "./instance/data-version.ts";
import { createEngineProcess, engineComponent } from "./instance/engine-process.ts";
import { createInstanceFiles, type Directories } from "./instance/instance-files.ts";
import { createInstanceRound } from "./instance/instance-round.ts";
import { createInstanceStatus } from "./instance/instance-status.ts";
import { createInstanceSupervisor } from "./instance/instance-supervisor.ts";
import { createNewStarts } from "./instance/new-starts.ts";
import { createLogReader } from "./instance/log-reader.ts";
import { createMemberData } from "./instance/member-data.ts";
import { createMemoryWatch } from "./instance/memory-watch.ts";
import { createQueueKeeper } from "./instance/queue-keeper.ts";
import { createProbes } from "./instance/probes.ts";
import { createDiskRoom } from "./instance/disk-room.ts";
import { createWriteBlock } from "./instance/write-block.ts";
import { bootMs } from "../keeper/boot-clock.ts";
import { createQuiet } from "./right/quiet.ts";
import { createRightKeeper } from "./right/right-keeper.ts";
import { createServerCertificate } from "./instance/server-certificate.ts";
import { openJournal } from "./journal/journal.ts";
import { createSampling } from "./samples/sampling.ts";
import { createObservationReport } from "./session/observation-report.ts";
import type { OutgoingFrame } from "./session/session.ts";
import { createUplink, type Uplink } from "./session/uplink.ts";
import { createAgentUpgrade } from "./upgrade/agent-upgrade.ts";
import { createHeadroom, ownMemoryBytes } from "./upgrade/headroom.ts";
import type { ReceivedCode } from "./upgrade/received-code.ts";
import type { Predecessor } from "./upgrade/take-over.ts";
import { handlers } from "./tasks/index.ts";
import { TaskFailed } from "./task-failed.ts";
import { createTaskRunner } from "./tasks/task-runner.ts";

export interface AgentDeps {
  readonly machineId: string;
  readonly machineStart: string;
  readonly directories: Directories;
  readonly controllers: readonly string[];
  readonly keeper: KeeperClient;
  readonly controlGroup: ControlGroup;
  /** The interface that is the machine's alone; empty when it shares the host's network. */
  readonly networkInterface: string;
  readonly code: ReceivedCode;
  /** Of components that do jobs: backups, restores and archives. */
  readonly jobProgram: string;
  /** The agent whose place this one takes; undefined when nobody is in charge yet but this one. */
  readonly predecessor: Predecessor | undefined;
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

const mostUnsent = 200;
/** An engine is found running within this time; only then is told of it, so that nobody sees it "starting". */
const adoptedWithinMs = 5_000;

/** Puts the agent together: the instance and its probes on one side, the controllers' stream and tasks on the other. */
export async function createAgent(deps: AgentDeps): Promise<Agent> {
  const { machineId, machineStart, directories, controllers, keeper, driverOf, sessionId, clock, random, log } = deps;
  const { code, predecessor } = deps;
  const memory = createMemoryWatch(deps.controlGroup, clock.now);
  const journal = await openJournal(join(directories.stateDir, "journal"), clock.now);
  const files = createInstanceFiles(directories);
  const bootId = bootIdOf(machineStart);
  /** Results that came while no session was open; the journal has the durable ones in any case. */
  const unsent: TaskResult[] = [];
  let parse: EngineDriver["parseLog"] | undefined;

  const status = createInstanceStatus(clock.now, () => report.soon());
  const { backups, restores, archives, observe, ...parts } = createBackupParts({
    keeper,
    program: deps.jobProgram,
    stateDir: directories.stateDir,
    runDir: directories.runDir,
    channel: () => uplink.channel(),
    now: clock.now,
    log,
    onChange: (isNews) => (isNews ? report.soon() : report.later()),
  });
  const certificate = createServerCertificate({
    path: join(directories.stateDir, "instance", "tls"),
    channel: () => uplink.channel(),
    connected: (signal) => uplink.connected(signal),
    authorityGeneration: () => uplink.authorityGeneration,
    now: clock.now,
  });
  const logs = createLogReader({ component: engineComponent, path: files.log, parse: () => parse });
  const writeBlock = createWriteBlock({ stateDir: directories.stateDir, now: clock.now });
  const room = createDiskRoom({ writeBlock, now: clock.now, log });
  const round = createInstanceRound({
    room,
    files,
    process: createEngineProcess({ keeper, logPath: files.log, beforeStop: archives.release }),
    restores,
    members: createMemberData({ status, log }),
    dataVersion: createDataVersion({ status, log }),
    archives,
    certificate,
    status,
    logs,
    memory,
    newStarts: createNewStarts(clock.monotonicMs),
    right: { held: (spec, signal) => right.held(spec, signal) },
    isSilent: () => probes.isSilent(),
    log,
    async driverOf(engine) {
      const driver = await driverOf(engine);
      parse = driver?.parseLog.bind(driver);
      return driver;
    },
  });
  const quiet = createQuiet(bootMs);
  const right = createRightKeeper({
    keeper,
    settings: () => supervisor.settings(),
    engine: round.engine,
    isSilent: () => probes.isSilent(),
    send: (frame) => {
      uplink.send(frame);
    },
    onFenced: status.fenced,
    bootMs,
    log,
  });
  const probes = createProbes({
    status,
    target: round.engine,
    certificate,
    memory,
    onListenerFree: () => supervisor.look(),
    room,
    onBlockChanged: () => supervisor.look(),
    async engineCpuMs() {
      // A keeper of before says nothing of it.
      await keeper.order({ op: "status" }).catch(() => undefined);
      return keeper.component(engineComponent)?.cpuMs;
    },
    monotonicMs: clock.monotonicMs,
    quiet,
  });
  const queues = createQueueKeeper({ target: round.engine, log });
  const hurryProbes = probes.hurry;
  const supervisor = createInstanceSupervisor({ files, keeper, round, certificate, status, hurryProbes, clock, log });

  const sampling = createSampling({
    path: join(directories.stateDir, "samples"),
    group: deps.controlGroup,
    dataDir: directories.dataDir,
    networkInterface: deps.networkInterface,
    status,
    engine: round.engine,
    archive: () => (archives.archiveId() === undefined ? undefined : archives.observation()),
    send: (frame) => uplink.send(frame),
    clock,
    random,
    log,
  });

  /** Of the loops that hold the machine to its settings; undefined while they rest. */
  let loops: { readonly halt: AbortController; readonly done: Promise<unknown> } | undefined;
  let gapMs = 0;
  const ending = new AbortController();
  const broken = Promise.withResolvers<never>();

  function takeUp(): void {
    const halt = new AbortController();
    const until = AbortSignal.any([ending.signal, halt.signal]);
    const done = Promise.all([
      supervisor.run(until),
      right.run(until),
      probes.run(until),
      sampling.run(until),
      parts.run(until),
      queues.run(until),
    ]);
    done.catch(broken.reject);
    loops = { halt, done };
  }

  const upgrade = createAgentUpgrade({
    keeper,
    code,
    headroom: createHeadroom({ group: deps.controlGroup, agentBytes: ownMemoryBytes, hostFreeBytes: freemem }),
    stateDir: directories.stateDir,
    gapMs: () => gapMs,
    log,
    work: {
      sessionId,
      get isConnected() {
        return uplink.channel() !== undefined;
      },
      isIdle: (taskId) => canStay.has(status.state) && runner.running.every((id) => id === taskId),
      hold: () => runner.hold(),
      async putDown() {
        uplink.pause();
        loops?.halt.abort();
        await loops?.done;
        loops = undefined;
        round.engine()?.driver.queues?.letGo();
        await journal.suspend();
      },
      async takeUp() {
        if (loops === undefined) {
          await journal.reopen();
          takeUp();
          uplink.goOn();
        }
        runner.release();
      },
      leave: () => ending.abort(),
    },
  });

  const runner = createTaskRunner({
    journal,
    handlers,
    surroundings: {
      supervisor,
      logs,
      upgrade,
      backups,
      quiet,
      async engine() {
        const engine = round.engine();
        if (engine === undefined)
          throw new TaskFailed("not_ready", `The engine is ${status.state}.`, { retryable: true });
        return engine;
      },
      async channel() {
        const channel = uplink.channel();
        if (channel === undefined) throw new TaskFailed("failed", "no controller is connected", { retryable: true });
        return channel;
      },
    },
    sendResult(value) {
      if (!uplink.send({ case: "taskResult", value }))
        unsent.splice(0, unsent.length, ...unsent.slice(-mostUnsent), value);
    },
    sendProgress(taskId, step, progressPct) {
      uplink.send({
        case: "taskProgress",
        value: { $typeName: "holdfast.agent.v1.TaskProgress", taskId, step, progressPct },
      });
    },
    now: clock.now,
    log,
  });

  // Until this agent has taken over, nothing is begun.
  if (predecessor !== undefined) runner.hold();

  const uplink: Uplink = createUplink({
    stateDir: directories.stateDir,
    controllers,
    ready: predecessor?.channel,
    hello: () =>
      create(HelloSchema, {
        machineId,
        agentVersion: code.own.release,
        agentDigest: code.own.digest,
        keeperProtocol: keeper.protocol,
        bootId,
        terms: Object.fromEntries(journal.terms),
        openTasks: journal.openTasks(),
        sessionId,
        succeeds: predecessor?.sessionId ?? "",
        // An older keeper counts a deadline from when it reads it.
        rights: keeper.protocol >= 4 ? 2 : 0,
      }),
    handlers: {
      onTask: runner.accept,
      onCancel: runner.cancel,
      onResultAck: runner.acknowledged,
      onSamplesAck: sampling.acknowledged,
      onRightAnswer: right.answered,
    },
    onOpen(session) {
      sampling.opened(session.welcome);
      right.ask();
      if (loops !== undefined) sendAll(session);
      else if (predecessor !== undefined) settled ??= settle(predecessor).catch(broken.reject);
    },
    clock,
    random,
    log,
  });

  let settled: Promise<void> | undefined;

  async function settle(before: Predecessor): Promise<void> {
    gapMs = await before.settle();
    log.info("took over from the agent of before", { gapMs });
    takeUp();
    await Promise.race([supervisor.looked(), sleep(adoptedWithinMs, undefined, { ref: false })]);
    isQuiet = false;
    runner.release();
    sendAll(uplink);
  }

  /** What the controller may not know yet. */
  function sendAll(session: { send(frame: OutgoingFrame): void }): void {
    for (const value of unsent.splice(0)) session.send({ case: "taskResult", value });
    for (const value of journal.unacknowledged()) session.send({ case: "taskResult", value });
    report.tell();
    // The machine's certificate may be one of new authorities: the engine's follows.
    supervisor.look();
  }

  let isQuiet = predecessor !== undefined;

  const report = createObservationReport({
    instance: () => {
      const instance = status.message();
      return instance && observe(instance);
    },
    isDue: () => !isQuiet && loops !== undefined,
    send: (frame) => {
      uplink.send(frame);
    },
    now: clock.now,
  });

  return {
    async run(signal) {
      signal.addEventListener("abort", () => ending.abort(), { once: true });
      if (predecessor === undefined) takeUp();
      const endReports = report.repeat();
      await Promise.race([uplink.run(ending.signal), broken.promise]);
      await loops?.done;
      endReports();
      if (loops !== undefined) await journal.close();
    },
  };
}

/** States in which nothing is under way with the engine. */
const canStay: ReadonlySet<string> = new Set(["absent", "running", "stopped", "failed"]);
