import { topologyOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Topology } from "@holdfast/common/engine-catalog/engine-row.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { peerRoles } from "./peers/peer-roles.ts";
import { primaryRoles } from "./primary-replicas/primary-roles.ts";
import type { MemberRoles } from "./topology-roles.ts";

const byTopology: Readonly<Record<Topology, MemberRoles>> = { primary_replicas: primaryRoles, peers: peerRoles };

function rolesOf({ spec }: Pick<ManagedServiceObject, "spec">): MemberRoles {
  return byTopology[topologyOf(spec.databaseType)];
}

export const taskTarget: MemberRoles["taskTarget"] = (service) => rolesOf(service).taskTarget(service);
export const firstMemberOf: MemberRoles["firstMemberOf"] = (service) => rolesOf(service).firstMemberOf(service);
export const onMachine: MemberRoles["onMachine"] = (service, id) => rolesOf(service).onMachine(service, id);
export const roleOf: MemberRoles["roleOf"] = (service, node) => rolesOf(service).roleOf(service, node);
export const isLeader: MemberRoles["isLeader"] = (service, node) => rolesOf(service).isLeader(service, node);
export const isRequiredForService: MemberRoles["isRequiredForService"] = (service, node) =>
  rolesOf(service).isRequiredForService(service, node);
export const takesWrites: MemberRoles["takesWrites"] = (service, node) => rolesOf(service).takesWrites(service, node);
export const takesBackups: MemberRoles["takesBackups"] = (service, node) =>
  rolesOf(service).takesBackups(service, node);
export const isRemovable: MemberRoles["isRemovable"] = (service, node) => rolesOf(service).isRemovable(service, node);
export const isInSync: MemberRoles["isInSync"] = (service, member) => rolesOf(service).isInSync(service, member);
export const serves: MemberRoles["serves"] = (service, nodes) => rolesOf(service).serves(service, nodes);
export const memberChecks: MemberRoles["checks"] = (service, nodes, now) =>
  rolesOf(service).checks(service, nodes, now);
export const dnsTargets: MemberRoles["dnsTargets"] = (service, nodes) => rolesOf(service).dnsTargets(service, nodes);
