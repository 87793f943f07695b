import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { MachineObject, MachineSize } from "#fleet/machine/machine.ts";
import type { NodeSpec } from "./managed-service.ts";

/** What the world is like for one service, read fresh at each reconcile. */
export interface ObservedService {
  readonly nodes: readonly ObservedNode[];
  /** Of the service's DNS names: are they as they should be in the store, and do the servers answer so? */
  readonly names: "absent" | "outdated" | "published" | "verified";
  /** Users or databases in its engine are being changed. */
  readonly isChanging: boolean;
  /** A backup of one that is being deleted is still to be taken. */
  readonly awaitsFinalBackup?: boolean;
  /** The machines of one that is being deleted stay, off. */
  readonly keepsDisk?: boolean;
  /** Newest moment that its log brings back, milliseconds since 1970; absent where no log is archived. */
  readonly newestPoint?: number | undefined;
  /** How settings that bind replicas to their primary differ from those that it runs with; absent where none does. */
  readonly heldSettings?: HeldSettings;
}

/** Settings of which replicas need as much as their primary has. */
export interface HeldSettings {
  /** With its next restart the primary has less of one. */
  readonly lowers: boolean;
  /** It has more of one. */
  readonly raises: boolean;
}

export interface ObservedNode {
  readonly node: NodeSpec;
  /** Absent for the primary. */
  readonly isReplica?: true;
  readonly machine: MachineObject | undefined;
  readonly connected: boolean;
  /** What the agent last told of its engine. */
  readonly instance: InstanceObservation | undefined;
  /** Its host is drained, with consent to stop what has no other node: it is off until that is over. */
  readonly isHeld: boolean;
  /** Its host, when that does not answer: whatever was ordered there waits until it does. */
  readonly silentHost: string | undefined;
  /** Its host is drained or given up: where the service has other nodes, another one takes its place elsewhere. */
  readonly mustMove?: true;
  /** It told that since the machine's start; what it told before is about an engine that is gone. */
  readonly isCurrent: boolean;
  /** Of a replica: for so long this controller has seen it not follow. */
  readonly awayMs?: number;
  /** Of a replica without a vote: both ends said just now that it follows. */
  readonly isProven?: true;
}

/** One thing to do. Each is idempotent. */
export type ServiceStep =
  | { readonly kind: "createMachine"; readonly node: NodeSpec }
  | { readonly kind: "powerMachine"; readonly node: NodeSpec; readonly power: "on" | "off" }
  /** The generation before the service's own is that of a stop that a start follows. */
  | { readonly kind: "converge"; readonly node: NodeSpec; readonly running: boolean; readonly generation: number }
  /**
   * The service's image and kernel come under the data of a machine that is stopped, and the machine is started; a snapshot
   * comes first.
   */
  | { readonly kind: "placeImage"; readonly node: NodeSpec }
  /** Brings a machine to the size that its service needs of it now. */
  | { readonly kind: "fitMachine"; readonly node: NodeSpec; readonly size: MachineSize }
  /** Nobody needs the snapshot of the machine's data any more. */
  | { readonly kind: "dropSnapshot"; readonly node: NodeSpec }
  | { readonly kind: "deleteMachine"; readonly node: NodeSpec }
  /** Nothing is left of a node that is removed. */
  | { readonly kind: "dropNode"; readonly node: NodeSpec }
  /** The primary is changing: `member/succession-verdict.ts` has what is next. */
  | { readonly kind: "handOver" }
  /** The primary is the last to restart: it gives way to this replica. */
  | { readonly kind: "switchOver"; readonly to: NodeSpec }
  | { readonly kind: "publishNames" }
  | { readonly kind: "verifyNames" }
  | { readonly kind: "withdrawNames" }
  | { readonly kind: "forget" };
