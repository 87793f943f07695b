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
import type { ControlGroup } from "./os/control-group.ts";
import type { KeeperClient } from "./os/keeper-client.ts";
import { createDataVersion } from "./workload/engine/data-version.ts";
import { createEngineProcess, engineComponent, engineLogAt } from "./workload/engine/engine-process.ts";
import { createInstanceFiles, type Directories } from "./workload/engine/instance-files.ts";
import { createInstanceReconciler } from "./workload/engine/instance-reconciler.ts";
import { createInstanceStatus } from "./workload/engine/instance-status.ts";
import { createInstanceSupervisor } from "./workload/engine/instance-supervisor.ts";
import { createRestartLimit } from "./workload/engine/restart-limit.ts";
import { createLogReader } from "./workload/engine/log-reader.ts";
import { createMemberData } from "./workload/engine/member-data.ts";
import { createMemoryWatch } from "./workload/engine/memory-watch.ts";
import { createQueueMaintenance } from "./workload/engine/queue-maintenance.ts";
import { createPeerData } from "./workload/engine/peer-data.ts";
import { createPeerWatch } from "./workload/engine/peer-watch.ts";
import { createProbes } from "./workload/engine/probes.ts";
import { createDiskGuard } from "./workload/engine/disk-guard.ts";
import { createWriteBlock } from "./workload/engine/write-block.ts";
import { bootId, bootMs } from "../keeper/boot-clock.ts";
import { createReplicationSilence } from "./primary-lease/replication-silence.ts";
import { createPrimaryLeaseHolder } from "./primary-lease/primary-lease-holder.ts";
import { createServerCertificate } from "./workload/engine/server-certificate.ts";
import { openJournal } from "./journal/journal.ts";
import { createSampling } from "./samples/sampling.ts";
import { createObservationReport } from "./session/observation-report.ts";
import type { OutgoingFrame } from "./session/session.ts";
import { createUplink, type Uplink } from "./session/uplink.ts";
import { createAgentUpgrade } from "./upgrade/agent-upgrade.ts";
import { createHeadroom, ownMemoryBytes } from "./upgrade/headroom.ts";
import type { ReceivedCode } from "./upgrade/received-code.ts";
import type { Predecessor } from "./upgrade/takeover.ts";
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
  /** Network interface of this machine alone; empty if it shares the host's network. */
  readonly networkInterface: string;
  readonly code: ReceivedCode;
  /** Program of the components for backups, restores and log archives. */
  readonly jobProgram: string;
  /** The agent that this one replaces; undefined if this one was started alone. */
  readonly predecessor: Predecessor | undefined;
  /** Loads the driver of an engine on first use; undefined for an unknown engine. */
  readonly driverOf: (engine: string) => Promise<EngineDriver | undefined>;
  readonly sessionId: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

export interface Agent {
  /** Runs until the signal. The engine keeps running. */
  run(signal: AbortSignal): Promise<void>;
}

const maxUnsent = 200;
/**
 * A new agent adopts the running engine within this time. It reports only then, so that users never see the state
 * "starting".
 */
const adoptedWithinMs = 5_000;

/**
 * Creates the agent out of its parts. The supervisor applies the newest instance spec through the reconciler; probes
 * observe the engine, and the primary lease holder keeps a primary's lease. The uplink keeps a session to one of the
 * controllers, which delivers specs and tasks and receives observations and samples. During an upgrade of the agent
 * these loops are suspended while the new agent takes over.
 */
export async function createAgent(deps: AgentDeps): Promise<Agent> {
  const { machineId, machineStart, directories, controllers, keeper, driverOf, sessionId, clock, random, log } = deps;
  const { code, predecessor } = deps;
  const memory = createMemoryWatch(deps.controlGroup, clock.now);
  const journal = await openJournal(join(directories.stateDir, "journal"), clock.now);
  const files = createInstanceFiles(directories);
  /** Results of tasks that ended while no session was open. The journal has those of durable tasks as well. */
  const unsent: TaskResult[] = [];
  let parse: EngineDriver["parseLog"] | undefined;

  const status = createInstanceStatus(clock.now, () => report.soon());
  const { backups, restores, archives, observe, ...parts } = createBackupParts({
    keeper,
    program: deps.jobProgram,
    stateDir: directories.stateDir,
    engineLog: engineLogAt(files.log),
    runDir: directories.runDir,
    channel: () => uplink.channel(),
    now: clock.now,
    log,
    onChange: (isStateChange) => (isStateChange ? report.soon() : report.later()),
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
  const diskGuard = createDiskGuard({ writeBlock, now: clock.now, log });
  const peerData = createPeerData({ status, log });
  const peers = createPeerWatch({ status, data: peerData, log });
  const reconciler = createInstanceReconciler({
    diskGuard,
    files,
    process: createEngineProcess({ keeper, logPath: files.log, beforeStop: archives.stop }),
    restores,
    members: createMemberData({ status, log }),
    peerData,
    peers,
    dataVersion: createDataVersion({ status, log }),
    archives,
    certificate,
    status,
    logs,
    memory,
    restartLimit: createRestartLimit(clock.monotonicMs),
    lease: { acquire: (spec, signal) => lease.acquire(spec, signal) },
    isUnresponsive: () => probes.isUnresponsive(),
    log,
    async driverOf(engine) {
      const driver = await driverOf(engine);
      parse = driver?.parseLog.bind(driver);
      return driver;
    },
  });
  const replicationSilence = createReplicationSilence(bootMs);
  const lease = createPrimaryLeaseHolder({
    keeper,
    settings: () => supervisor.settings(),
    engine: reconciler.engine,
    isUnresponsive: () => probes.isUnresponsive(),
    send: (frame) => {
      uplink.send(frame);
    },
    onFenced: status.setFencedGeneration,
    bootMs,
    log,
  });
  const probes = createProbes({
    status,
    target: reconciler.engine,
    certificate,
    memory,
    onListenerFree: () => supervisor.recheck(),
    diskGuard,
    onBlockChanged: () => supervisor.recheck(),
    async engineCpuMs() {
      await keeper.order({ op: "status" }).catch(() => undefined);
      return keeper.component(engineComponent)?.cpuMs;
    },
    monotonicMs: clock.monotonicMs,
    replicationSilence,
    peers,
  });
  const queues = createQueueMaintenance({ target: reconciler.engine, log });
  const probeNow = probes.probeNow;
  const supervisor = createInstanceSupervisor({ files, keeper, reconciler, certificate, status, probeNow, clock, log });

  const sampling = createSampling({
    path: join(directories.stateDir, "samples"),
    group: deps.controlGroup,
    dataDir: directories.dataDir,
    networkInterface: deps.networkInterface,
    status,
    engine: reconciler.engine,
    archive: () => (archives.archiveId() === undefined ? undefined : archives.observation()),
    send: (frame) => uplink.send(frame),
    clock,
    random,
    log,
  });

  /** The loops that keep the machine at its settings; undefined while they are suspended. */
  let loops: { readonly stop: AbortController; readonly done: Promise<unknown> } | undefined;
  let gapMs = 0;
  const ending = new AbortController();
  const failed = Promise.withResolvers<never>();

  function startLoops(): void {
    const stop = new AbortController();
    const until = AbortSignal.any([ending.signal, stop.signal]);
    const done = Promise.all([
      supervisor.run(until),
      lease.run(until),
      probes.run(until),
      sampling.run(until),
      parts.run(until),
      queues.run(until),
    ]);
    done.catch(failed.reject);
    loops = { stop, done };
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
      isIdle: (taskId) => idleStates.has(status.state) && runner.running.every((id) => id === taskId),
      pauseTasks: () => runner.pause(),
      async suspend() {
        uplink.pause();
        loops?.stop.abort();
        await loops?.done;
        loops = undefined;
        reconciler.engine()?.driver.queues?.closeSessions();
        await journal.suspend();
      },
      async resume() {
        if (loops === undefined) {
          await journal.reopen();
          startLoops();
          uplink.resume();
        }
        runner.resume();
      },
      exit: () => ending.abort(),
    },
  });

  const runner = createTaskRunner({
    journal,
    handlers,
    shared: {
      supervisor,
      logs,
      upgrade,
      backups,
      replicationSilence,
      async engine() {
        const engine = reconciler.engine();
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
        unsent.splice(0, unsent.length, ...unsent.slice(-maxUnsent), value);
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

  // Tasks start only after this agent has taken over.
  if (predecessor !== undefined) runner.pause();

  const uplink: Uplink = createUplink({
    stateDir: directories.stateDir,
    controllers,
    initialChannel: predecessor?.channel,
    hello: () =>
      create(HelloSchema, {
        machineId,
        agentVersion: code.own.release,
        agentDigest: code.own.digest,
        keeperProtocol: keeper.protocol,
        // Differs after each start of the host or of the machine.
        bootId: `${bootId()}/${machineStart}`,
        terms: Object.fromEntries(journal.terms),
        openTasks: journal.openTasks(),
        sessionId,
        replacesSessionId: predecessor?.sessionId ?? "",
        primaryLeaseVersion: 2,
      }),
    handlers: {
      onTask: runner.accept,
      onCancel: runner.cancel,
      onResultAck: runner.acknowledged,
      onSamplesAck: sampling.acknowledged,
      onPrimaryLeaseResponse: lease.onResponse,
    },
    onOpen(session) {
      sampling.opened(session.welcome);
      lease.requestNow();
      if (loops !== undefined) sendAll(session);
      else if (predecessor !== undefined) handoverDone ??= settle(predecessor).catch(failed.reject);
    },
    clock,
    random,
    log,
  });

  let handoverDone: Promise<void> | undefined;

  async function settle(old: Predecessor): Promise<void> {
    gapMs = await old.settle();
    log.info("agent took over", { gapMs });
    startLoops();
    await Promise.race([supervisor.firstRound(), sleep(adoptedWithinMs, undefined, { ref: false })]);
    isReportSuppressed = false;
    runner.resume();
    sendAll(uplink);
  }

  /** Sends everything that the controller may not have received. */
  function sendAll(session: { send(frame: OutgoingFrame): void }): void {
    for (const value of unsent.splice(0)) session.send({ case: "taskResult", value });
    for (const value of journal.unacknowledged()) session.send({ case: "taskResult", value });
    report.sendNow();
    // The machine's certificate may come from new authorities; the engine's certificate then follows.
    supervisor.recheck();
  }

  let isReportSuppressed = predecessor !== undefined;

  const report = createObservationReport({
    instance: () => {
      const instance = status.message();
      return instance && observe(instance);
    },
    isDue: () => !isReportSuppressed && loops !== undefined,
    send: (frame) => {
      uplink.send(frame);
    },
    now: clock.now,
  });

  return {
    async run(signal) {
      signal.addEventListener("abort", () => ending.abort(), { once: true });
      if (predecessor === undefined) startLoops();
      const endReports = report.start();
      await Promise.race([uplink.run(ending.signal), failed.promise]);
      await loops?.done;
      endReports();
      if (loops !== undefined) await journal.close();
    },
  };
}

/** States in which no change of the engine is in progress. */
const idleStates: ReadonlySet<string> = new Set(["absent", "running", "stopped", "failed"]);
