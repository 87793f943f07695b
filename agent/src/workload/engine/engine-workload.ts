import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { bootMs } from "../../../keeper/boot-clock.ts";
import { createBackupParts } from "../../backup/backup-parts.ts";
import type { DrivenInstance, EngineDriver } from "../../engines/engine-driver.ts";
import { roleOf } from "../../engines/members.ts";
import { createPrimaryLeaseHolder } from "../../primary-lease/primary-lease-holder.ts";
import { createReplicationSilence } from "../../primary-lease/replication-silence.ts";
import { createHealthSource } from "../sample-source.ts";
import { createArchiveSource, createEngineSource, createQueueSource } from "./engine-sources.ts";
import { TaskFailed } from "../../task-failed.ts";
import { createTextLogReader } from "../log-reader.ts";
import { createServerCertificate } from "../server-certificate.ts";
import type { Workload, WorkloadDeps } from "../workload.ts";
import { createWorkloadSupervisor } from "../workload-supervisor.ts";
import { createDataVersion } from "./data-version.ts";
import { createDiskGuard } from "./disk-guard.ts";
import { createEngineProcess, engineComponent, engineLogAt } from "./engine-process.ts";
import { createInstanceFiles } from "./instance-files.ts";
import { createInstanceReconciler } from "./instance-reconciler.ts";
import { createInstanceStatus } from "./instance-status.ts";
import { createMemberData } from "./member-data.ts";
import { createMemoryWatch } from "./memory-watch.ts";
import { createPeerData } from "./peer-data.ts";
import { createPeerWatch } from "./peer-watch.ts";
import { createProbes } from "./probes.ts";
import { createRestartLimit } from "./restart-limit.ts";
import { createWriteBlock } from "./write-block.ts";

export interface EngineWorkloadDeps {
  /** Program of the components for backups, restores and log archives. */
  readonly jobProgram: string;
  /** Loads the driver of an engine on first use; undefined for an unknown engine. */
  readonly driverOf: (engine: string) => Promise<EngineDriver | undefined>;
}

/** Component of the lines of slow statements, and name of their log in requests. */
const slowComponent = "slow";

/**
 * A database engine as the workload of its machine. The supervisor applies the newest instance spec through the
 * reconciler; probes observe the engine, and the primary lease holder extends a primary's lease.
 */
export function createEngineWorkload(
  { directories, keeper, controlGroup, uplink, report, clock, log }: WorkloadDeps,
  { jobProgram, driverOf }: EngineWorkloadDeps,
): Workload {
  const memory = createMemoryWatch(controlGroup, clock.now);
  const files = createInstanceFiles(directories);
  let parse: EngineDriver["parseLog"] | undefined;
  let slowLog: EngineDriver["slowLog"];

  const status = createInstanceStatus(clock.now, () => report.schedule());
  const { backups, restores, archives, observe, ...parts } = createBackupParts({
    keeper,
    program: jobProgram,
    stateDir: directories.stateDir,
    engineLog: engineLogAt(files.log),
    runDir: directories.runDir,
    channel: () => uplink.channel(),
    now: clock.now,
    log,
    onChange: (isStateChange) => (isStateChange ? report.schedule() : report.scheduleProgress()),
  });
  const certificate = createServerCertificate({
    path: join(directories.stateDir, "instance", "tls"),
    channel: () => uplink.channel(),
    connected: (signal) => uplink.connected(signal),
    authorityGeneration: () => uplink.authorityGeneration,
    now: clock.now,
  });
  const logs = createTextLogReader({ component: engineComponent, path: files.log, parse: () => parse });
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
      slowLog = driver?.slowLog;
      return driver;
    },
  });
  const { engine } = reconciler;
  const replicationSilence = createReplicationSilence(bootMs);
  const lease = createPrimaryLeaseHolder({
    keeper,
    settings: () => supervisor.settings(),
    engine,
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
    target: engine,
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
  const queues = createQueueMaintenance({ target: engine, log });
  const supervisor = createWorkloadSupervisor<InstanceSpec>({
    files,
    ownerOf: ({ serviceId }) => serviceId,
    noun: "engine",
    keeper,
    reconciler: { converge: reconciler.converge, isReady: () => engine() !== undefined },
    dueAt: () => certificate.renewalAt,
    status,
    probeNow: probes.probeNow,
    clock,
    log,
  });

  return {
    status,
    async apply({ workload }, signal) {
      if (workload.case !== "engine") throw new TaskFailed("invalid_task", "The task has no engine.");
      await supervisor.apply(workload.value, signal);
    },
    recheck: supervisor.recheck,
    firstRound: supervisor.firstRound,
    run: (signal) =>
      Promise.all([
        supervisor.run(signal),
        lease.run(signal),
        probes.run(signal),
        parts.run(signal),
        queues.run(signal),
      ]),
    suspend: () => engine()?.driver.queues?.closeSessions(),
    observe() {
      const instance = status.message();
      return instance && observe(instance);
    },
    logs: {
      async read(request, signal) {
        if (request.component !== slowComponent || slowLog === undefined) return logs.read(request, signal);
        const { path, parse: parseSlow } = slowLog;
        const base = path({ paths: { data: directories.dataDir } });
        const reader = createTextLogReader({ component: slowComponent, path: base, parse: () => parseSlow });
        return { ...(await reader.read(request, signal)), component: slowComponent };
      },
    },
    sources: [
      createEngineSource({ engine, monotonicMs: clock.monotonicMs }),
      createQueueSource(engine),
      createHealthSource(status),
      createArchiveSource(() => (archives.archiveId() === undefined ? undefined : archives.observation()), clock.now),
    ],
    engine: {
      current: engine,
      backups,
      replicationSilence,
      onPrimaryLeaseResponse: lease.onResponse,
      requestLeaseNow: lease.requestNow,
    },
  };
}

interface QueueMaintenanceDeps {
  /** The running engine that accepts connections; undefined without one. */
  readonly target: () => DrivenInstance | undefined;
  readonly log: Log;
}

const queueIntervalMs = 60_000;
/** Delay after the start of the agent, to leave a starting engine undisturbed. */
const queueDelayMs = 5_000;
const queueTimeoutMs = 300_000;

/** Runs maintenance of the engine's queues once a minute, with or without a controller. */
function createQueueMaintenance({ target, log }: QueueMaintenanceDeps): {
  run(signal: AbortSignal): Promise<void>;
} {
  return {
    async run(signal) {
      let waitMs = queueDelayMs;
      while (!signal.aborted) {
        await sleep(waitMs, undefined, { signal }).catch(() => undefined);
        const engine = target();
        if (signal.aborted || engine?.driver.queues === undefined) continue;
        waitMs = queueIntervalMs;
        // The primary's changes reach replicas by replication.
        if (roleOf(engine.instance.spec) !== "primary") continue;
        const limit = AbortSignal.any([signal, AbortSignal.timeout(queueTimeoutMs)]);
        await engine.driver.queues.maintain(engine.instance, limit).catch((error: unknown) => {
          if (!signal.aborted && target() !== undefined) log.warn("queue maintenance failed", { error: String(error) });
        });
      }
    },
  };
}
