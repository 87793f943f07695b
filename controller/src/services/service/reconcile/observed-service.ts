import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { MachineObject, MachineSize } from "#fleet/machine/machine.ts";
import type { ReplayMemory } from "../../backup/restore/replay-memory.ts";
import type { NodeSpec } from "../managed-service.ts";

/** Observed state of one service, read anew in each round of its reconciler. */
export interface ObservedService {
  readonly nodes: readonly ObservedNode[];
  /** DNS names of the service: `absent` or `outdated` in the store, `published` there, or `verified` at the servers. */
  readonly names: "absent" | "outdated" | "published" | "verified";
  /** Users or databases in its engine are being changed. */
  readonly isChanging: boolean;
  /** The final backup of a deletion is still to be taken. */
  readonly awaitsFinalBackup?: boolean;
  /** The machines of a deleted service stay, powered off. */
  readonly retainsDisks?: boolean;
  /** Newest moment that the archived log can restore, in milliseconds since 1970; absent without an archive. */
  readonly newestRecoveryPoint?: number | undefined;
  /** Pending change of parameters that a standby must have at least as high as its primary; absent: none. */
  readonly standbySensitiveChange?: StandbySensitiveChange;
}

/**
 * Pending change of parameters that a standby must have at least as high as its primary (PostgreSQL manual, Hot
 * Standby: Administrator's Overview), such as `max_connections`.
 */
export interface StandbySensitiveChange {
  /** The next restart lowers one of them on the primary. */
  readonly lowers: boolean;
  /** The next restart raises one of them on the primary. */
  readonly raises: boolean;
}

/** Observed state of one node: its machine, its agent and its engine. */
export interface ObservedNode {
  readonly node: NodeSpec;
  /** Absent for the primary. */
  readonly isReplica?: true;
  readonly machine: MachineObject | undefined;
  readonly connected: boolean;
  /** State of the engine as the agent reported it last. */
  readonly instance: InstanceObservation | undefined;
  /** Its host is drained, with consent to stop single nodes: the machine is off until the drain ends. */
  readonly stoppedForDrain: boolean;
  /** Id of its host while that does not answer: orders for the machine wait for the host. */
  readonly silentHost: string | undefined;
  /** Its host is drained or lost: a service with other nodes replaces this one on another host. */
  readonly mustMove?: true;
  /** Memory that it needs until its restore is finished; absent while its own suffices. */
  readonly replayMemory?: ReplayMemory;
  /** The report is of the machine's current boot; an earlier report describes an engine that has ended. */
  readonly isCurrent: boolean;
  /** Replica only: time for which this controller has seen it not follow. */
  readonly disconnectedMs?: number;
  /** Replica without failover candidacy only: primary and replica both confirmed just now that it follows. */
  readonly isProven?: true;
}

/** One step toward the desired state. Each is idempotent. */
export type ServiceStep =
  | { readonly kind: "createMachine"; readonly node: NodeSpec }
  | { readonly kind: "powerMachine"; readonly node: NodeSpec; readonly power: "on" | "off" }
  /** A generation below the service's own stops an engine that is started again afterwards. */
  | { readonly kind: "converge"; readonly node: NodeSpec; readonly running: boolean; readonly generation: number }
  /** Gives a stopped machine the service's image and kernel, after a snapshot of its data, and starts it. */
  | { readonly kind: "installImage"; readonly node: NodeSpec }
  /** Resizes a machine to the size that its service needs now. */
  | { readonly kind: "fitMachine"; readonly node: NodeSpec; readonly size: MachineSize }
  /** Gives a machine more memory until its restore is finished. */
  | { readonly kind: "raiseMemory"; readonly node: NodeSpec; readonly memoryBytes: number }
  /** The snapshot of the machine's data is no longer needed. */
  | { readonly kind: "deleteSnapshot"; readonly node: NodeSpec }
  | { readonly kind: "deleteMachine"; readonly node: NodeSpec }
  /** Removes a node whose machine is deleted from the service. */
  | { readonly kind: "removeNode"; readonly node: NodeSpec }
  /** Advances the change of the primary; `member/primary-replicas/primary-change-plan.ts` decides how. */
  | { readonly kind: "changePrimary" }
  /** The primary restarts last: it switches over to this replica first. */
  | { readonly kind: "switchOver"; readonly to: NodeSpec }
  | { readonly kind: "publishNames" }
  | { readonly kind: "verifyNames" }
  | { readonly kind: "withdrawNames" }
  | { readonly kind: "forget" };
