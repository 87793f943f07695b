import type { HealthCheck, ManagedServiceObject, NodeSpec } from "../../managed-service.ts";
import type { ObservedNode } from "../../reconcile/observed-service.ts";
import { isEstablished, numberOf } from "../members.ts";
import { awaitsRestart } from "../restarts.ts";
import type { MemberRoles } from "../topology-roles.ts";
import { clusterReportOf, clusterReportOfMember } from "./cluster-report.ts";

type Members = Pick<ManagedServiceObject, "spec" | "status">;

/**
 * Roles of members that elect their leader: all of them serve clients, and the service does not depend on one member.
 */
export const peerRoles: MemberRoles = {
  taskTarget(service) {
    const running = service.status.nodes.filter(({ status }) => status === "Running").map(({ id }) => id);
    const staying = service.spec.nodes.filter(isEstablished);
    const healthy = staying.filter(({ id }) => running.includes(id));
    return healthy.find((node) => isLeader(service, node)) ?? healthy[0] ?? staying[0] ?? firstOf(service);
  },
  firstMemberOf: firstOf,
  onMachine(service, machineId) {
    const { spec, status } = service;
    const home = firstOf(service);
    const withMachineId = <N extends { readonly id: string }>(node: N): N =>
      node.id === home.id ? { ...node, id: machineId } : node;
    return {
      ...service,
      spec: { ...spec, nodes: spec.nodes.map(withMachineId) },
      status: { ...status, nodes: status.nodes.map(withMachineId) },
    };
  },
  roleOf: (service, node) => (isLeader(service, node) ? "primary" : "replica"),
  isLeader,
  isRequiredForService: isForming,
  takesWrites: (_service, node) => node.joining !== true,
  takesBackups: (service, node) => peerRoles.taskTarget(service).id === node.id,
  isRemovable: () => true,
  isInSync: (_service, member) => isPeerInSync(member),
  serves: (service, nodes) => isForming(service) || clusterReportOf(nodes) !== undefined,
  dnsTargets(service, nodes) {
    const staying = nodes.filter(({ node }) => isEstablished(node));
    const healthy = staying.filter(isPeerInSync).map(({ node }) => node.id);
    // The names of a service without a healthy member remain, so that clients can reconnect when a member recovers.
    const ids = healthy.length > 0 ? healthy : service.spec.nodes.map(({ id }) => id);
    return { service: ids, replicas: ids };
  },
  checks: (service, nodes, now) => (isForming(service) ? [] : [quorumCheck(service, nodes, now)]),
};

/** True until the first members have formed the cluster. Until then the failure of one member is the service's. */
export function isForming({ status }: Members): boolean {
  return status.cluster?.formed !== true;
}

function isLeader({ status }: Members, { id }: Pick<NodeSpec, "id">): boolean {
  return status.cluster?.leader === id;
}

function firstOf({ metadata, spec }: ManagedServiceObject): NodeSpec {
  const [first] = spec.nodes;
  if (first === undefined) throw new Error(`service ${metadata.id} has no node`);
  return first;
}

/** True if the member is part of the majority and has all its data. */
export function isPeerInSync(member: ObservedNode): boolean {
  const report = clusterReportOfMember(member);
  return report !== undefined && report.isMember && report.hasMajority && report.inSync;
}

function quorumCheck(service: ManagedServiceObject, nodes: readonly ObservedNode[], now: number): HealthCheck {
  const check = { name: "quorum", nodeId: firstOf(service).id, since: now };
  const report = clusterReportOf(nodes);
  if (report === undefined)
    return { ...check, status: "unhealthy", reason: "No majority of the members agrees on a leader." };
  const waiting = nodes.filter((member) => awaitsRestart(service.spec, member.node) && isPeerInSync(member));
  if (waiting.length > 0 && !waiting.some(({ node }) => report.safeToRestart.includes(numberOf(node))))
    return { ...check, status: "degraded", reason: "Restarts wait until the cluster can run without the next member." };
  return { ...check, status: "healthy", reason: "" };
}
