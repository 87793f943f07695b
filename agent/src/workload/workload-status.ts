import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  CheckSchema,
  type InstanceObservation,
  InstanceObservationSchema,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { EngineCheck } from "../engines/engine-driver.ts";

export type WorkloadState = "absent" | "preparing" | "starting" | "running" | "stopping" | "stopped" | "failed";

/** The settings that a machine reports. */
export interface ReportedSpec {
  readonly ownerId: string;
  readonly nodeId: string;
  readonly generation: bigint;
  readonly term: bigint;
  readonly restartCount: bigint;
  readonly storageBytes: bigint;
}

/** Sizes of the data's disk. */
export interface ReportedSpace {
  readonly usedBytes: number;
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/**
 * State of a workload of any kind, as it is reported to the controller. Each part of the agent sets its own facts;
 * `onChange` is called when a relevant one changes.
 */
export interface WorkloadStatus {
  readonly state: WorkloadState;
  /** Reason of the state; empty without one. */
  readonly reason: string;
  setState(state: WorkloadState, reason?: string): void;
  /** Sets the settings that the machine converges to. */
  setSpec(spec: ReportedSpec): void;
  /** The newest generation on disk. */
  specSaved(generation: bigint): void;
  /** Sets the result of one health check; each has its own source. */
  setCheck(check: EngineCheck): void;
  /** Removes the named checks, or all without a name: a workload that does not run has none. */
  removeChecks(...names: string[]): void;
  setDiskSpace(disk: ReportedSpace): void;
  /** Metrics that this machine cannot measure, each with the reason. */
  setAbsentMetrics(metrics: Readonly<Record<string, string>>): void;
  /** Requested storage in bytes; undefined before the first settings. */
  readonly storageBytes: number | undefined;
  /** Overall health; undefined while the workload is stopped, starting or stopping. */
  readonly level: EngineCheck["status"] | undefined;
  /** The observation to report; undefined before the first settings. */
  message(): InstanceObservation | undefined;
  /** Compares the facts with the last report, and calls `onChange` if a relevant fact differs. */
  settle(): void;
}

export interface WorkloadStatusDeps {
  readonly now: () => number;
  readonly onChange: () => void;
  /** Additional facts of this kind of workload. A change of them is reported immediately. */
  readonly facts?: () => unknown;
  /** The fields of the observation that this kind of workload adds. */
  readonly fields?: () => MessageInitShape<typeof InstanceObservationSchema>;
}

/** Status levels of checks, from the most severe one. */
const levels: readonly EngineCheck["status"][] = ["unhealthy", "degraded", "healthy"];

export function createWorkloadStatus({
  now,
  onChange,
  facts = () => undefined,
  fields = () => ({}),
}: WorkloadStatusDeps): WorkloadStatus {
  let state: WorkloadState = "absent";
  let reason = "";
  let since = now();
  /** Start of the first of consecutive failures: retries do not reset the time since which the workload fails. */
  let failingSince: number | undefined;
  let spec: ReportedSpec | undefined;
  let savedGeneration = 0n;
  let disk: ReportedSpace = { usedBytes: 0, freeBytes: 0, totalBytes: 0 };
  let absentMetrics: Readonly<Record<string, string>> = {};
  let reported = "";
  const checks = new Map<string, EngineCheck & { readonly since: number }>();

  /** Reports relevant changes immediately. Sizes change all the time and wait for the next periodic report. */
  function settle(): void {
    const material = JSON.stringify([
      state,
      reason,
      String(spec?.generation),
      String(savedGeneration),
      String(spec?.term),
      String(spec?.restartCount),
      absentMetrics,
      disk.totalBytes,
      facts(),
      [...checks.values()],
    ]);
    if (material === reported) return;
    reported = material;
    onChange();
  }

  return {
    get state() {
      return state;
    },
    get reason() {
      return reason;
    },
    setState(next, newReason = "") {
      if (next !== state) since = now();
      if (next === "running" || next === "stopped") failingSince = undefined;
      if (next === "failed") since = failingSince ??= since;
      state = next;
      reason = newReason;
      settle();
    },
    setSpec(next) {
      spec = next;
      settle();
    },
    specSaved(generation) {
      if (generation <= savedGeneration) return;
      savedGeneration = generation;
      settle();
    },
    setCheck(check) {
      const before = checks.get(check.name);
      checks.set(check.name, { ...check, since: before?.status === check.status ? before.since : now() });
      settle();
    },
    removeChecks(...names) {
      for (const name of names.length === 0 ? [...checks.keys()] : names) checks.delete(name);
      settle();
    },
    setDiskSpace(space) {
      disk = space;
      settle();
    },
    setAbsentMetrics(metrics) {
      absentMetrics = metrics;
      settle();
    },
    get storageBytes() {
      return spec === undefined ? undefined : Number(spec.storageBytes);
    },
    get level() {
      if (state === "failed") return "unhealthy";
      if (state !== "running" || checks.size === 0) return undefined;
      const found = new Set([...checks.values()].map((check) => check.status));
      return levels.find((level) => found.has(level));
    },
    message() {
      if (spec === undefined) return undefined;
      const { ownerId, nodeId, generation, term, restartCount } = spec;
      return create(InstanceObservationSchema, {
        serviceId: ownerId,
        nodeId,
        state,
        since: timestampFromMs(since),
        reason,
        generation,
        term,
        restartCount,
        checks: [...checks.values()].map((check) =>
          create(CheckSchema, { ...check, since: timestampFromMs(check.since) }),
        ),
        dataBytes: BigInt(Math.round(disk.usedBytes)),
        freeBytes: BigInt(Math.round(disk.freeBytes)),
        diskBytes: BigInt(Math.round(disk.totalBytes)),
        absentMetrics: { ...absentMetrics },
        savedGeneration,
        ...fields(),
      });
    },
    settle,
  };
}
