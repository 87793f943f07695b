import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  type ReadLogs,
  type ReadLogsResult,
  ReadLogsSchema,
  type WorkloadSpec,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { measureDisk } from "../../os/disk-space.ts";
import { createEnginePrograms } from "../../os/engine-programs.ts";
import { TaskFailed } from "../../task-failed.ts";
import { storageCheck } from "../engine/storage-check.ts";
import { createTextLogReader } from "../log-reader.ts";
import { createHealthSource } from "../sample-source.ts";
import { createSpecFile } from "../spec-file.ts";
import type { Workload, WorkloadDeps } from "../workload.ts";
import { createWorkloadStatus } from "../workload-status.ts";
import { createWorkloadSupervisor } from "../workload-supervisor.ts";
import { createAppFront } from "./app-front.ts";
import { createAppReconciler } from "./app-reconciler.ts";
import { createAppRelay } from "./app-relay.ts";
import { appOf } from "./app-spec.ts";
import { createContainers, releaseLog } from "./containers.ts";
import { probeLiveness } from "./readiness-probe.ts";
import { createReleaseStates } from "./release-states.ts";
import { createSlotFile } from "./slots.ts";

/** Version of the keeper's protocol that has containers. */
const containerProtocol = 7;
const probeIntervalMs = 5_000;
/** Number of lines in the report of a failed release. */
const tailLines = 20;

/**
 * A hosted app as the workload of its machine: its releases as containers, behind a front that sends the requests to
 * one of them. The spec on disk, the slots and the unpacked images are all that a machine needs to serve again after a
 * restart, without a controller or a registry.
 */
export function createAppWorkload({ directories, keeper, report, clock, log }: WorkloadDeps): Workload {
  const { stateDir, runDir, dataDir, softwareRoot } = directories;
  const states = createReleaseStates(() => status.settle());
  const status = createWorkloadStatus({
    now: clock.now,
    onChange: () => report.schedule(),
    facts: () => states.message(),
    fields: () => ({ app: states.message() }),
  });
  const front = createAppFront({ keeper, stateDir, runDir, softwareRoot });
  const relay = createAppRelay({ keeper, stateDir, runDir, dataDir, softwareRoot });
  const containers = createContainers({
    keeper,
    run: createEnginePrograms(keeper, stateDir, "container"),
    stateDir,
    dataDir,
  });

  function read(releaseId: string, request: ReadLogs, signal: AbortSignal): Promise<ReadLogsResult> {
    return createTextLogReader({
      component: "app",
      path: releaseLog(stateDir, releaseId),
      parse: () => parseLine,
    }).read(request, signal);
  }

  const reconciler = createAppReconciler({
    slotFile: createSlotFile(stateDir),
    containers,
    front,
    relay,
    states,
    status,
    async lastLines(releaseId) {
      const request = create(ReadLogsSchema, { newest: true, limit: tailLines });
      const { lines } = await read(releaseId, request, AbortSignal.timeout(probeIntervalMs));
      return lines.map(({ message }) => message);
    },
    now: clock.now,
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
    logs: {
      async read(request, signal) {
        const { desired } = supervisor.settings();
        const fallback = desired?.workload.case === "app" ? desired.workload.value.servingReleaseId : "";
        return read(reconciler.serving()?.release.id ?? fallback, request, signal);
      },
    },
    sources: [createHealthSource(status)],
  };
}

/** A line of a release's log: the keeper's time, then what the program printed. */
function parseLine(line: string) {
  const [, time, message = ""] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (.*)$/.exec(line) ?? [];
  return time === undefined ? undefined : { time: new Date(time), level: "info" as const, message };
}
