import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  CheckSchema,
  type InstanceObservation,
  InstanceObservationSchema,
  PeersObservationSchema,
  ReplicationObservationSchema,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { EngineCheck, EngineObservation } from "../../engines/engine-driver.ts";
import type { LogicalSlot } from "../../engines/logical-slot.ts";
import type { DiscardedLog, FollowingState, ShutdownPosition } from "../../engines/replication-facet.ts";
import type { PeersReport } from "../../engines/peers-facet.ts";
import type { DiskSpace } from "../../os/disk-space.ts";
import type { CollationStatus } from "./collation-check.ts";

export type InstanceState = "absent" | "preparing" | "starting" | "running" | "stopping" | "stopped" | "failed";

/** Replication state of a member, as far as it is known. */
export interface ReplicationState {
  readonly role: "primary" | "replica";
  readonly state?: FollowingState;
  readonly copiedBytes?: number;
  /** Position up to which a replica has received log. */
  readonly position?: string;
  /** Position of a primary that was shut down cleanly. */
  readonly stoppedAt?: ShutdownPosition | undefined;
  /** Role of a stopped engine's data: a primary's, or a replica's without writes of its own. */
  readonly dataRole?: "primary" | "replica";
}

/** State of the cluster as this member has it. */
export interface PeersState extends PeersReport {
  /** True if the data on this machine are those of a member. */
  readonly isMember: boolean;
}

/** Most severe first. */
const levels: readonly EngineCheck["status"][] = ["unhealthy", "degraded", "healthy"];

/**
 * State of the instance as it is reported to the controller. Each part of the agent sets its own facts; `onChange` is
 * called when a relevant one changes.
 */
export interface InstanceStatus {
  readonly state: InstanceState;
  setState(state: InstanceState, reason?: string): void;
  /** Sets the settings that the machine converges to, and the parameters that the engine rejected. */
  setSpec(spec: InstanceSpec, rejected: Readonly<Record<string, string>>): void;
  /** The newest generation on disk. */
  specSaved(generation: bigint): void;
  /** Sets the result of one health check; each has its own source. */
  setCheck(check: EngineCheck): void;
  /** Sets the collation libraries that the data depends on, with their health check. */
  setCollations(number: CollationStatus): void;
  /** Removes the named checks, or all without a name: an engine that does not run has none. */
  removeChecks(...names: string[]): void;
  /** Starts an observation of the engine. Its number orders it among all others. */
  startObservation(): number;
  /**
   * Sets the result of an observation. It is dropped if a later one was set already; one without a response changes no
   * settings.
   */
  setObservation(observation: EngineObservation, number: number): void;
  setDiskSpace(disk: Pick<DiskSpace, "usedBytes" | "freeBytes" | "totalBytes">): void;
  /** Sets the replication state from the data, while the engine cannot report it. */
  setReplication(replication: ReplicationState): void;
  /** State of the cluster, as the engine reports it now; undefined while it reports none. */
  setPeers(peers: PeersState | undefined): void;
  /** Log that the data had and the primary's data lack. */
  setDiscardedLog(log: DiscardedLog | undefined): void;
  /** Generation of the settings from which on a writable engine ends with its primary lease; 0n if it does not. */
  setFencedGeneration(generation: bigint): void;
  /** Sets how full the disk is, in percent of `storageLevels`, and whether writes are blocked. */
  setStorageLevel(level: number, writesBlocked: boolean): void;
  /** True if the machine's image has a pooler for the engine. */
  setPoolerAvailable(available: boolean): void;
  /** Metrics that this machine cannot measure, each with the reason. */
  setAbsentMetrics(metrics: Readonly<Record<string, string>>): void;
  /** Generation of the authorities that issued the certificate that the engine uses. */
  setCertificateGeneration(authorityGeneration: number): void;
  /** Requested storage in bytes; undefined before the first settings. */
  readonly storageBytes: number | undefined;
  /** Overall health; undefined while the engine is stopped, starting or stopping. */
  readonly level: EngineCheck["status"] | undefined;
  /** The observation to report; undefined before the first settings. */
  message(): InstanceObservation | undefined;
}

export function createInstanceStatus(now: () => number, onChange: () => void): InstanceStatus {
  let state: InstanceState = "absent";
  let reason = "";
  let since = now();
  /** Start of the first of consecutive failures: retries do not reset the time since which the engine fails. */
  let failingSince: number | undefined;
  let spec: InstanceSpec | undefined;
  let rejected: Readonly<Record<string, string>> = {};
  let savedGeneration = 0n;
  let engine: EngineObservation | undefined;
  let observations = 0;
  let newestObservation = 0;
  let disk: Pick<DiskSpace, "usedBytes" | "freeBytes" | "totalBytes"> = { usedBytes: 0, freeBytes: 0, totalBytes: 0 };
  let storage = { storageLevel: 0, writesBlocked: false };
  let certificateGeneration = 0;
  let offersPooler = false;
  let absentMetrics: Readonly<Record<string, string>> = {};
  let textLibraries: readonly string[] = [];
  let reported = "";
  let replication: ReplicationState | undefined;
  let logicalSlots: readonly LogicalSlot[] | undefined;
  let peers: PeersState | undefined;
  let fencedGeneration = 0n;
  let discardedLog: DiscardedLog | undefined;
  const checks = new Map<string, EngineCheck & { readonly since: number }>();

  /** Reports relevant changes at once. Sizes change all the time and wait for the next periodic report. */
  function settle(): void {
    const material = JSON.stringify([
      state,
      reason,
      String(spec?.generation),
      String(savedGeneration),
      String(spec?.term),
      String(spec?.restartCount),
      rejected,
      engine?.version,
      engine?.pendingRestart,
      engine?.effectiveParameters,
      certificateGeneration,
      absentMetrics,
      textLibraries,
      [replication?.role, replication?.state, replication?.stoppedAt?.position, replication?.dataRole],
      peers,
      String(fencedGeneration),
      discardedLog,
      disk.totalBytes,
      storage,
      offersPooler,
      [...checks.values()],
    ]);
    if (material === reported) return;
    reported = material;
    onChange();
  }

  function note(check: EngineCheck): void {
    const before = checks.get(check.name);
    checks.set(check.name, { ...check, since: before?.status === check.status ? before.since : now() });
  }

  return {
    get state() {
      return state;
    },
    setState(next, newReason = "") {
      if (next !== state) since = now();
      // The report of an engine that ran before is not one of the next.
      if (next !== "running") peers = undefined;
      if (next === "running" || next === "stopped") failingSince = undefined;
      if (next === "failed") since = failingSince ??= since;
      state = next;
      reason = newReason;
      settle();
    },
    setSpec(next, refusals) {
      spec = next;
      rejected = refusals;
      settle();
    },
    specSaved(generation) {
      if (generation <= savedGeneration) return;
      savedGeneration = generation;
      settle();
    },
    setCheck(check) {
      note(check);
      settle();
    },
    setCollations({ check, libraries }) {
      textLibraries = libraries;
      note(check);
      settle();
    },
    removeChecks(...names) {
      for (const name of names.length === 0 ? [...checks.keys()] : names) checks.delete(name);
      settle();
    },
    startObservation: () => (observations += 1),
    setObservation(observation, number) {
      if (number < newestObservation || observation.version === "") return;
      newestObservation = number;
      engine = observation;
      // An observation that started before the engine ended says nothing about its data.
      if (state !== "stopped") ({ replication, logicalSlots } = observation);
      settle();
    },
    setDiskSpace(space) {
      disk = space;
      settle();
    },
    setReplication(next) {
      replication = next;
      logicalSlots = undefined;
      settle();
    },
    setPeers(next) {
      peers = next;
      settle();
    },
    setDiscardedLog(log) {
      discardedLog = log;
      settle();
    },
    setFencedGeneration(generation) {
      fencedGeneration = generation;
      settle();
    },
    setStorageLevel(level, isBlocked) {
      storage = { storageLevel: level, writesBlocked: isBlocked };
      settle();
    },
    setPoolerAvailable(available) {
      offersPooler = available;
      settle();
    },
    setAbsentMetrics(metrics) {
      absentMetrics = metrics;
      settle();
    },
    setCertificateGeneration(authorityGeneration) {
      certificateGeneration = authorityGeneration;
      settle();
    },
    get storageBytes() {
      return spec === undefined ? undefined : Number(spec.storageBytes);
    },
    get level() {
      if (state === "failed") return "unhealthy";
      if (state !== "running" || checks.size === 0) return undefined;
      const reported = new Set([...checks.values()].map((check) => check.status));
      return levels.find((level) => reported.has(level));
    },
    message() {
      if (spec === undefined) return undefined;
      return create(InstanceObservationSchema, {
        serviceId: spec.serviceId,
        nodeId: spec.nodeId,
        state,
        since: timestampFromMs(since),
        reason,
        generation: spec.generation,
        term: spec.term,
        restartCount: spec.restartCount,
        checks: [...checks.values()].map((check) =>
          create(CheckSchema, { ...check, since: timestampFromMs(check.since) }),
        ),
        pendingRestart: [...(engine?.pendingRestart ?? [])],
        rejectedParameters: { ...rejected },
        effectiveParameters: { ...engine?.effectiveParameters },
        dataBytes: BigInt(Math.round(disk.usedBytes)),
        freeBytes: BigInt(Math.round(disk.freeBytes)),
        diskBytes: BigInt(Math.round(disk.totalBytes)),
        memoryDataBytes: BigInt(Math.round(engine?.memoryDataBytes ?? 0)),
        ...storage,
        engineVersion: engine?.version ?? "",
        certificateGeneration: BigInt(certificateGeneration),
        absentMetrics: { ...absentMetrics },
        textLibraries: [...textLibraries],
        savedGeneration,
        offersPooler,
        ...(spec.peers && peers && state === "running" && { peers: peersMessage(peers) }),
        ...(spec.replication &&
          (replication !== undefined || fencedGeneration > 0n) && {
            replication: replicationMessage(replication, logicalSlots, fencedGeneration, discardedLog),
          }),
      });
    },
  };
}

function peersMessage({ quorum, members, joining = [], safeToRestart, leaving, ...facts }: PeersState) {
  return create(PeersObservationSchema, {
    isMember: facts.isMember,
    isLeader: facts.isLeader,
    voters: quorum.voters,
    reachableVoters: quorum.reachable,
    hasMajority: quorum.hasMajority,
    inSync: facts.inSync,
    members: [...members],
    joining: [...joining],
    safeToRestart: [...safeToRestart],
    leaving: leaving.map(({ number, remainingBytes }) => ({
      number,
      remainingBytes: BigInt(Math.round(remainingBytes)),
    })),
  });
}

function replicationMessage(
  replication: ReplicationState | undefined,
  slots: readonly LogicalSlot[] | undefined,
  fencedGeneration: bigint,
  discarded: DiscardedLog | undefined,
) {
  const { role, state, copiedBytes = 0, stoppedAt, dataRole } = replication ?? {};
  return create(ReplicationObservationSchema, {
    fencedGeneration,
    ...(discarded && {
      discarded: { ...discarded, bytes: BigInt(discarded.bytes), savedBytes: BigInt(discarded.savedBytes) },
    }),
    ...(slots && { logicalSlots: { slots: slots.map((slot) => ({ ...slot })) } }),
    role: role ?? "",
    state: state ?? "",
    copiedBytes: BigInt(Math.round(copiedBytes)),
    stoppedAt: stoppedAt?.position ?? "",
    stoppedHistory: stoppedAt?.history ?? "",
    dataRole: dataRole ?? "",
  });
}
