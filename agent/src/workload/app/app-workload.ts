import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { ReadLogsSchema, type WorkloadSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { measureDisk } from "../../os/disk-space.ts";
import { createEnginePrograms } from "../../os/engine-programs.ts";
import { TaskFailed } from "../../task-failed.ts";
import { createMemoryWatch } from "../engine/memory-watch.ts";
import { storageCheck } from "../engine/storage-check.ts";
import { createMergedLogReader, createTextLogReader, type LogFile } from "../log-reader.ts";
import { createHealthSource } from "../sample-source.ts";
import { createSpecFile } from "../spec-file.ts";
import type { Workload, WorkloadDeps } from "../workload.ts";
import { createWorkloadStatus } from "../workload-status.ts";
import { createWorkloadSupervisor } from "../workload-supervisor.ts";
import { createAppFront } from "./app-front.ts";
import { parseReleaseLine } from "./app-log-line.ts";
import { createAppReconciler } from "./app-reconciler.ts";
import { createAppRelay } from "./app-relay.ts";
import { appOf } from "./app-spec.ts";
import { createContainers } from "./containers.ts";
import { createPlatformLog } from "./platform-log.ts";
import { createProgramEnds } from "./program-ends.ts";
import { probeLiveness } from "./readiness-probe.ts";
import { createReleaseLogs } from "./release-logs.ts";
import { createReleaseStates } from "./release-states.ts";
import { createSlotFile } from "./slots.ts";

/** Version of the keeper's protocol that has containers. */
const containerProtocol = 7;
const probeIntervalMs = 5_000;
/** Number of lines in the report of a failed release. */
const tailLines = 20;
const memoryAdvice = "Have the program use less memory, or take a larger plan.";

/**
 * A hosted app as the workload of its machine: its releases as containers, behind a front that sends the requests to
 * one of them. The spec on disk, the slots and the unpacked images are all that a machine needs to serve again after a
 * restart, without a controller or a registry.
 */
export function createAppWorkload(deps: WorkloadDeps): Workload {
  const { directories, keeper, controlGroup, report, clock, log } = deps;
  const { stateDir, runDir, dataDir, softwareRoot } = directories;
  const states = createReleaseStates(() => status.settle());
  const status = createWorkloadStatus({
    now: clock.now,
    onChange: () => report.schedule(),
    facts: () => states.message(),
    fields() {
      const app = states.message();
      return app === undefined ? {} : { app };
    },
  });
  const front = createAppFront({ keeper, stateDir, runDir, softwareRoot });
  const relay = createAppRelay({ keeper, stateDir, runDir, dataDir, softwareRoot });
  const releaseLogs = createReleaseLogs(stateDir);
  const containers = createContainers({
    keeper,
    run: createEnginePrograms(keeper, stateDir, "container"),
    logs: releaseLogs,
    controlGroup,
    dataDir,
  });
  const platformLog = createPlatformLog(stateDir, clock.now, log);
  const memory = createMemoryWatch(controlGroup, clock.now, memoryAdvice);
  const ends = createProgramEnds({ memory, print: platformLog.print, now: clock.now });

  const releaseLog = (path: string): LogFile => ({ component: "app", path, parse: parseReleaseLine });
  /** The lines of all releases, and those of the platform about them. */
  const logs = createMergedLogReader({
    logs: () => [...releaseLogs.paths().map(releaseLog), platformLog.file],
    main() {
      const { desired } = supervisor.settings();
      const fallback = desired?.workload.case === "app" ? desired.workload.value.servingReleaseId : "";
      return releaseLogs.path(reconciler.serving()?.release.id ?? fallback);
    },
    now: clock.now,
  });

  const reconciler = createAppReconciler({
    slotFile: createSlotFile(stateDir),
    containers,
    front,
    relay,
    states,
    ends,
    status,
    async lastLines(releaseId) {
      const request = create(ReadLogsSchema, { newest: true, limit: tailLines });
      const reader = createTextLogReader({ ...releaseLog(releaseLogs.path(releaseId)), parse: () => parseReleaseLine });
      const { lines } = await reader.read(request, AbortSignal.timeout(probeIntervalMs));
      return lines.map(({ message }) => message);
    },
    now: clock.now,
    log,
  });

  const supervisor = createWorkloadSupervisor<WorkloadSpec>({
    files: createSpecFile(stateDir),
    ownerOf: ({ ownerId }) => ownerId,
    noun: "program",
    keeper,
    reconciler: {
      converge: reconciler.converge,
      isReady: () => status.state === "running" && reconciler.isRunning(),
    },
    dueAt: () => undefined,
    status,
    probeNow: () => undefined,
    clock,
    log,
  });

  /** Checks the release that serves, and the disk, every few seconds. */
  async function probe(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(probeIntervalMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted || status.storageBytes === undefined) continue;
      const disk = await measureDisk(dataDir, status.storageBytes, signal).catch(() => undefined);
      if (disk !== undefined) status.setDiskSpace(disk);
      const serving = reconciler.serving();
      if (status.state !== "running" || serving === undefined) continue;
      if (disk !== undefined) status.setCheck(storageCheck(disk));
      status.setCheck(ends.check());
      status.setCheck(await memory.check());
      const { healthCheckPath, port } = serving.release;
      const reason = await probeLiveness({ ...serving, path: healthCheckPath, programPort: port }, signal);
      // The state may have changed during the probe.
      if (signal.aborted || status.state !== "running") continue;
      status.setCheck({
        name: "liveness",
        status: reason === undefined ? "healthy" : "unhealthy",
        reason: reason ?? "",
      });
    }
  }

  return {
    status,
    async apply(spec, signal) {
      if (keeper.protocol < containerProtocol)
        throw new TaskFailed("not_supported", "This machine runs containers after its next restart.");
      appOf(spec);
      await supervisor.apply(spec, signal);
    },
    recheck: supervisor.recheck,
    firstRound: supervisor.firstRound,
    run: (signal) => Promise.all([supervisor.run(signal), probe(signal)]),
    suspend: () => undefined,
    observe: status.message,
    logs,
    sources: [createHealthSource(status)],
  };
}
