import { create } from "@bufbuild/protobuf";
import { PeersObservationSchema, ReplicationObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { EngineObservation } from "../../engines/engine-driver.ts";
import type { DiscardedLog, FollowingState, LogicalSlots, ShutdownPosition } from "../../engines/replication-facet.ts";
import type { PeersReport } from "../../engines/peers-facet.ts";
import { createWorkloadStatus, type WorkloadStatus } from "../workload-status.ts";
import type { CollationStatus } from "./collation-check.ts";

/** Replication state of a member, from the last observation of its engine. */
export interface ReplicationState {
  readonly role: "primary" | "replica";
  readonly state?: FollowingState;
  readonly copiedBytes?: number;
  /** Position up to which a replica has received log. */
  readonly position?: string;
  /** Position of a primary that was shut down cleanly. */
  readonly stoppedAt?: ShutdownPosition | undefined;
  /** Role of a stopped engine's data: a primary's, or a replica's without other writes than the primary's. */
  readonly dataRole?: "primary" | "replica";
}

/** State of the cluster from the view of this member. */
export interface PeersState extends PeersReport {
  /** True if the data on this machine belong to a member. */
  readonly isMember: boolean;
}

/** State of the instance as it is reported to the controller: a workload's state, and the facts of its engine. */
export interface InstanceStatus extends Omit<WorkloadStatus, "setSpec" | "settle"> {
  /** Sets the settings that the machine converges to, and the parameters that the engine rejected. */
  setSpec(spec: InstanceSpec, rejected: Readonly<Record<string, string>>): void;
  /** Sets the collation libraries that the data depends on, with their health check. */
  setCollations(number: CollationStatus): void;
  /** Starts an observation of the engine. Its number orders it among all others. */
  startObservation(): number;
  /**
   * Sets the result of an observation, unless the result of a later one was set. An observation without a response
   * changes no settings.
   */
  setObservation(observation: EngineObservation, number: number): void;
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
  /** Generation of the authorities that issued the certificate that the engine uses. */
  setCertificateGeneration(authorityGeneration: number): void;
}

export function createInstanceStatus(now: () => number, onChange: () => void): InstanceStatus {
  let spec: InstanceSpec | undefined;
  let rejected: Readonly<Record<string, string>> = {};
  let engine: EngineObservation | undefined;
  let observations = 0;
  let newestObservation = 0;
  let storage = { storageLevel: 0, writesBlocked: false };
  let certificateGeneration = 0;
  let offersPooler = false;
  let textLibraries: readonly string[] = [];
  let replication: ReplicationState | undefined;
  let logicalSlots: LogicalSlots | undefined;
  let peers: PeersState | undefined;
  let fencedGeneration = 0n;
  let discardedLog: DiscardedLog | undefined;

  const facts = () => [
    rejected,
    engine?.version,
    engine?.pendingRestart,
    engine?.effectiveParameters,
    certificateGeneration,
    textLibraries,
    [replication?.role, replication?.state, replication?.stoppedAt?.position, replication?.dataRole],
    peers,
    String(fencedGeneration),
    discardedLog,
    storage,
    offersPooler,
  ];

  const fields = () => ({
    pendingRestart: [...(engine?.pendingRestart ?? [])],
    rejectedParameters: { ...rejected },
    effectiveParameters: { ...engine?.effectiveParameters },
    memoryDataBytes: BigInt(Math.round(engine?.memoryDataBytes ?? 0)),
    ...storage,
    engineVersion: engine?.version ?? "",
    certificateGeneration: BigInt(certificateGeneration),
    textLibraries: [...textLibraries],
    offersPooler,
    ...(spec?.peers && peers && base.state === "running" && { peers: peersMessage(peers) }),
    ...(spec?.replication &&
      (replication !== undefined || fencedGeneration > 0n) && {
        replication: replicationMessage(replication, logicalSlots, fencedGeneration, discardedLog),
      }),
  });

  const base = createWorkloadStatus({ now, onChange, facts, fields });
  const { setCheck, settle } = base;

  return {
    get state() {
      return base.state;
    },
    get reason() {
      return base.reason;
    },
    setState(next, reason) {
      // The report of an earlier run of the engine does not apply to the next run.
      if (next !== "running") peers = undefined;
      base.setState(next, reason);
    },
    setSpec(next, refusals) {
      spec = next;
      rejected = refusals;
      base.setSpec({ ...next, ownerId: next.serviceId });
    },
    specSaved: base.specSaved,
    setCheck,
    setCollations({ check, libraries }) {
      textLibraries = libraries;
      setCheck(check);
    },
    removeChecks: base.removeChecks,
    startObservation: () => (observations += 1),
    setObservation(observation, number) {
      if (number < newestObservation || observation.version === "") return;
      newestObservation = number;
      engine = observation;
      // An observation that started before the engine ended does not show the state of the stopped data.
      if (base.state !== "stopped") ({ replication, logicalSlots } = observation);
      settle();
    },
    setDiskSpace: base.setDiskSpace,
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
    setAbsentMetrics: base.setAbsentMetrics,
    setCertificateGeneration(authorityGeneration) {
      certificateGeneration = authorityGeneration;
      settle();
    },
    get storageBytes() {
      return base.storageBytes;
    },
    get level() {
      return base.level;
    },
    message: base.message,
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
  slots: LogicalSlots | undefined,
  fencedGeneration: bigint,
  discarded: DiscardedLog | undefined,
) {
  const { role, state, copiedBytes = 0, stoppedAt, dataRole } = replication ?? {};
  return create(ReplicationObservationSchema, {
    fencedGeneration,
    ...(discarded && {
      discarded: { ...discarded, bytes: BigInt(discarded.bytes), savedBytes: BigInt(discarded.savedBytes) },
    }),
    ...(slots && { logicalSlots: { slots: [...slots.usable], lost: [...slots.lost] } }),
    role: role ?? "",
    state: state ?? "",
    copiedBytes: BigInt(Math.round(copiedBytes)),
    stoppedAt: stoppedAt?.position ?? "",
    stoppedHistory: stoppedAt?.history ?? "",
    dataRole: dataRole ?? "",
  });
}
