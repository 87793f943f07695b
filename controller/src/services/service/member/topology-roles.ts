import type { HealthCheck, ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { ObservedNode } from "../reconcile/observed-service.ts";

/** Role of a member in the API. */
export type MemberRole = "primary" | "replica";

/** Ids of the members whose addresses a service's DNS names resolve to. */
export interface DnsTargets {
  readonly service: readonly string[];
  /** Members that serve reads. */
  readonly replicas: readonly string[];
}

/** The roles of a service's members, by topology. */
export interface MemberRoles {
  /** The member that runs tasks of the engine. */
  taskTarget(service: ManagedServiceObject): NodeSpec;
  /** The member that is created first, or is restored. */
  firstMemberOf(service: ManagedServiceObject): NodeSpec;
  /** The service with its first member on this machine. */
  onMachine(service: ManagedServiceObject, machineId: string): ManagedServiceObject;
  roleOf(service: Pick<ManagedServiceObject, "spec" | "status">, node: Pick<NodeSpec, "id">): MemberRole;
  /** True for the member that changes last. */
  isLeader(service: Pick<ManagedServiceObject, "spec" | "status">, node: Pick<NodeSpec, "id">): boolean;
  /** True if the service fails when the member fails. */
  isRequiredForService(service: Pick<ManagedServiceObject, "spec" | "status">, node: Pick<NodeSpec, "id">): boolean;
  /** True if clients of the service write at the member. */
  takesWrites(service: ManagedServiceObject, node: NodeSpec): boolean;
  /** True if the member's agent takes the service's backups. */
  takesBackups(service: ManagedServiceObject, node: Pick<NodeSpec, "id">): boolean;
  /** True if the member may be removed once its successor is in sync. */
  isRemovable(service: ManagedServiceObject, node: Pick<NodeSpec, "id">): boolean;
  /** True if the member is in sync with the other members, by its agent's last report. */
  isInSync(service: ManagedServiceObject, member: ObservedNode): boolean;
  /** True if the members, together, can serve clients. */
  serves(service: ManagedServiceObject, nodes: readonly ObservedNode[]): boolean;
  dnsTargets(service: ManagedServiceObject, nodes: readonly ObservedNode[]): DnsTargets;
  /** Health checks of the members together. */
  checks(service: ManagedServiceObject, nodes: readonly ObservedNode[], now: number): readonly HealthCheck[];
}
