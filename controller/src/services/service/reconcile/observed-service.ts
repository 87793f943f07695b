import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { MachineObject, MachineSize } from "#fleet/machine/machine.ts";
import type { ReplayMemory } from "../../backup/restore/replay-memory.ts";
import type { NodeSpec } from "../managed-service.ts";

/** Observed state of one service. Each round of the reconciler reads it again. */
export interface ObservedService {
  readonly nodes: readonly ObservedNode[];
  /** DNS names of the service: `absent` or `outdated` in the store, `published` there, or `verified` at the servers. */
  readonly names: "absent" | "outdated" | "published" | "verified";
  /** True while users or databases in the engine are being changed. */
  readonly isChanging: boolean;
  /** True while a deletion waits for its final backup. */
  readonly awaitsFinalBackup?: boolean;
  /** True if the machines of a deleted service are retained, powered off, for an undelete. */
  readonly retainsDisks?: boolean;
  /** Newest time that the archived log can restore, in milliseconds since 1970; absent without an archive. */
  readonly newestRecoveryPoint?: number | undefined;
  /** Pending change of standby-sensitive parameters; absent: none. */
  readonly standbySensitiveChange?: StandbySensitiveChange;
}

/**
 * Pending change of parameters that a standby must have at least as high as its primary (PostgreSQL manual, Hot
 * Standby: Administrator's Overview), such as `max_connections`.
 */
export interface StandbySensitiveChange {
  /** True if the next restart lowers one of them on the primary. */
  readonly lowers: boolean;
  /** True if the next restart raises one of them on the primary. */
  readonly raises: boolean;
}

/** Observed state of one node: its machine, its agent and its engine. */
export interface ObservedNode {
  readonly node: NodeSpec;
  /** Absent for the primary. */
  readonly isReplica?: true;
  readonly machine: MachineObject | undefined;
  readonly connected: boolean;
  /** State of the engine by the agent's last report. */
  readonly instance: InstanceObservation | undefined;
  /** True if the host is drained with consent to stop single nodes: the machine is off until the drain ends. */
  readonly stoppedForDrain: boolean;
  /** Id of the node's host while the host does not respond, so that orders for the machine wait. */
  readonly silentHost: string | undefined;
  /** True if the host is drained or lost, so that a service with other nodes must replace this node elsewhere. */
  readonly mustMove?: true;
  /** Memory that the machine needs until its restore is finished; absent while its own memory suffices. */
  readonly replayMemory?: ReplayMemory;
  /**
   * True if `instance` was reported since the machine's last start. An earlier report is of an engine that has ended.
   */
  readonly isCurrent: boolean;
  /** Replica only: time since this controller first observed that it does not follow. */
  readonly disconnectedMs?: number;
  /** Replica without failover candidacy only: true if primary and replica have just confirmed that it follows. */
  readonly isProven?: true;
  /**
   * Synchronous standby only: true if it has just been confirmed to have everything that the primary had committed
   * after its commits began to wait.
   */
  readonly hasAllCommits?: true;
}

/** One step toward the desired state. Each is idempotent. */
export type ServiceStep =
  | { readonly kind: "createMachine"; readonly node: NodeSpec }
  | { readonly kind: "powerMachine"; readonly node: NodeSpec; readonly power: "on" | "off" }
  /** Delivers settings. A generation below the service's stops an engine that will be started again. */
  | { readonly kind: "converge"; readonly node: NodeSpec; readonly running: boolean; readonly generation: number }
  /** Gives a stopped machine the service's image and kernel, after a snapshot of its data, and starts it. */
  | { readonly kind: "installImage"; readonly node: NodeSpec }
  /** Resizes a machine to the size that its service needs now. */
  | { readonly kind: "fitMachine"; readonly node: NodeSpec; readonly size: MachineSize }
  /** Gives a machine more memory until its restore is finished. */
  | { readonly kind: "raiseMemory"; readonly node: NodeSpec; readonly memoryBytes: number }
  /** Deletes the snapshot of the machine's data, which is no longer needed. */
  | { readonly kind: "deleteSnapshot"; readonly node: NodeSpec }
  | { readonly kind: "deleteMachine"; readonly node: NodeSpec }
  /** Removes a node whose machine is deleted from the service. */
  | { readonly kind: "removeNode"; readonly node: NodeSpec }
  /** Advances the change of the primary; `../member/primary-replicas/primary-change-plan.ts` decides how. */
  | { readonly kind: "changePrimary" }
  /** Starts a switchover to this replica, before the old primary restarts or is removed. */
  | { readonly kind: "switchOver"; readonly to: NodeSpec }
  | { readonly kind: "publishNames" }
  | { readonly kind: "verifyNames" }
  | { readonly kind: "withdrawNames" }
  | { readonly kind: "forget" };
