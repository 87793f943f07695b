import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import type { InstanceObservation, PrimaryLeaseResponse } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { WorkloadSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Backups } from "../backup/backups.ts";
import type { DrivenInstance } from "../engines/engine-driver.ts";
import type { ControlGroup } from "../os/control-group.ts";
import type { KeeperClient } from "../os/keeper-client.ts";
import type { ReplicationSilence } from "../primary-lease/replication-silence.ts";
import type { SampleSource } from "./sample-source.ts";
import type { OutgoingFrame } from "../session/session.ts";
import type { Directories } from "./engine/instance-files.ts";
import type { TextLogReader } from "./log-reader.ts";
import type { WorkloadStatus } from "./workload-status.ts";

/** A kind of workload: a field of the oneof in WorkloadSpec. */
export type WorkloadKind = NonNullable<WorkloadSpec["workload"]["case"]>;

/**
 * The program that a machine runs for its owner, such as a database engine. A workload converges its machine to the
 * newest spec, with or without a controller, and reports its state.
 */
export interface Workload {
  readonly status: Pick<WorkloadStatus, "state" | "storageBytes" | "setAbsentMetrics">;
  /** Stores the spec, and resolves once the machine matches it. Throws "superseded" for one that is not the newest. */
  apply(spec: WorkloadSpec, signal: AbortSignal): Promise<void>;
  /** Reconciles now, such as after a change of the installation's authorities. */
  recheck(): void;
  /** Resolves after the first reconcile since the last call of `run`. */
  firstRound(): Promise<void>;
  /** Runs until the signal, more than once if an upgrade of the agent is given up. The program runs on. */
  run(signal: AbortSignal): Promise<unknown>;
  /** Called before another agent takes over: it closes what two agents cannot have open. */
  suspend(): void;
  /** The state to report; undefined before the first spec. */
  observe(): InstanceObservation | undefined;
  readonly logs: Pick<TextLogReader, "read">;
  /** Sources of the workload's metrics, in addition to the machine's. */
  readonly sources: readonly SampleSource[];
  /** Undefined for other kinds than engines, which have no contents for tasks. */
  readonly engine?: EngineFacet;
}

/** The parts of an engine's workload that tasks and the session use. */
export interface EngineFacet {
  /** The running engine; undefined while it accepts no writes. */
  current(): DrivenInstance | undefined;
  readonly backups: Backups;
  readonly replicationSilence: Pick<ReplicationSilence, "unchangedMs">;
  onPrimaryLeaseResponse(response: PrimaryLeaseResponse): void;
  /** Requests the primary lease of a new controller. */
  requestLeaseNow(): void;
}

/** The parts of the agent that a workload uses. */
export interface WorkloadDeps {
  readonly directories: Directories;
  readonly keeper: KeeperClient;
  readonly controlGroup: ControlGroup;
  readonly uplink: {
    /** Returns false if no controller is connected. */
    send(frame: OutgoingFrame): boolean;
    channel(): ControllerChannel | undefined;
    connected(signal: AbortSignal): Promise<ControllerChannel>;
    readonly authorityGeneration: number;
  };
  /** Reports the state of the workload: in this tick of the event loop, or within a second. */
  readonly report: { schedule(): void; scheduleProgress(): void };
  readonly clock: Clock;
  readonly log: Log;
}

export type CreateWorkload = (deps: WorkloadDeps) => Workload;

/** The kinds of workloads that an agent runs. */
export type WorkloadKinds = Readonly<Partial<Record<WorkloadKind, CreateWorkload>>>;
