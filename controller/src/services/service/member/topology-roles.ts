import type { HealthCheck, ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { ObservedNode } from "../reconcile/observed-service.ts";

/** Role of a member as it is shown. */
export type MemberRole = "primary" | "replica";

/** The members that a service's names lead to, by their ids. */
export interface Addressees {
  readonly service: readonly string[];
  /** Members for reads. */
  readonly replicas: readonly string[];
}

/** Parts of members in a service. Each topology has its own. */
export interface MemberRoles {
  /** The member that runs tasks of the engine. */
  taskTarget(service: ManagedServiceObject): NodeSpec;
  /** The member that is created first, or is restored. */
  homeOf(service: ManagedServiceObject): NodeSpec;
  /** The service with its first member on this machine. */
  onMachine(service: ManagedServiceObject, machineId: string): ManagedServiceObject;
  roleOf(service: Pick<ManagedServiceObject, "spec" | "status">, node: Pick<NodeSpec, "id">): MemberRole;
  /** True for the member that changes last. */
  isLeader(service: Pick<ManagedServiceObject, "spec" | "status">, node: Pick<NodeSpec, "id">): boolean;
  /** True if a failure of the member is one of the service. */
  isNeeded(service: Pick<ManagedServiceObject, "spec" | "status">, node: Pick<NodeSpec, "id">): boolean;
  /** True if clients of the service write at the member. */
  takesWrites(service: ManagedServiceObject, node: NodeSpec): boolean;
  /** True if the member's agent takes the service's backups. */
  takesBackups(service: ManagedServiceObject, node: Pick<NodeSpec, "id">): boolean;
  /** True if the member may be removed, with its successor in sync. */
  mayLeave(service: ManagedServiceObject, node: Pick<NodeSpec, "id">): boolean;
  /** True if the member does its part with the others, by its agent's last report. */
  isInSync(service: ManagedServiceObject, seen: ObservedNode): boolean;
  /** True if the members together serve clients. */
  serves(service: ManagedServiceObject, nodes: readonly ObservedNode[]): boolean;
  addressees(service: ManagedServiceObject, nodes: readonly ObservedNode[]): Addressees;
  /** Health checks of the members together. */
  checks(service: ManagedServiceObject, nodes: readonly ObservedNode[], now: number): readonly HealthCheck[];
}
