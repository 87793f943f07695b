import type { ManagedServiceObject } from "../../managed-service.ts";
import type { ObservedNode } from "../../reconcile/observed-service.ts";
import type { MemberRoles } from "../topology-roles.ts";
import { isReplicated } from "../members.ts";
import { follows, isPrimary, namedPrimary, primaryOf, standbysOf } from "./primary.ts";

/** Roles of a primary (writes, tasks, backups) and of the replicas that follow it. */
export const primaryRoles: MemberRoles = {
  taskTarget: primaryOf,
  firstMemberOf: primaryOf,
  onMachine(service, machineId) {
    const { spec, status } = service;
    const withMachineId = <N extends { readonly id: string }>(node: N): N =>
      isPrimary(service, node) ? { ...node, id: machineId } : node;
    return {
      ...service,
      spec: { ...spec, nodes: spec.nodes.map(withMachineId) },
      status: { ...status, primaryNodeId: machineId, nodes: status.nodes.map(withMachineId) },
    };
  },
  roleOf: (service, node) => (isPrimary(service, node) ? "primary" : "replica"),
  isLeader: isPrimary,
  isRequiredForService: isPrimary,
  takesWrites: isPrimary,
  takesBackups: (service, node) => namedPrimary(service) === node.id,
  isRemovable: (service, node) => !isPrimary(service, node),
  isInSync: (service, member) => isPrimary(service, member.node) || follows(member),
  serves: (service, nodes) => nodes.some(({ node }) => isPrimary(service, node)),
  checks: () => [],
  dnsTargets(service, nodes) {
    // Clients are directed to a new primary once it has taken a write.
    const primary = service.spec.primaryChange?.from ?? service.status.primaryNodeId;
    const readers = readersOf(service, nodes);
    return { service: [primary], replicas: readers.length === 0 ? [primary] : readers };
  },
};

/** Replicas that follow the primary, by their last reports. */
function readersOf(service: ManagedServiceObject, nodes: readonly ObservedNode[]): string[] {
  if (!isReplicated(service.spec)) return [];
  const standbys = new Set(standbysOf(service).map(({ id }) => id));
  return nodes.filter((node) => standbys.has(node.node.id) && follows(node)).map(({ node }) => node.id);
}
