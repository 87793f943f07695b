import type { InstanceSpec, Member } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "./instance.ts";

/** All members of the service, this one included; empty for a service that never had a second member. */
export function membersOf({ replication, peers }: Pick<InstanceSpec, "replication" | "peers">): Member[] {
  return peers?.members ?? replication?.members ?? [];
}

/** Desired role. `none`: the service has no primary now, so this member neither accepts writes nor follows. */
export type MemberRole = "primary" | "replica" | "none";

/**
 * The role that the settings assign to this member. The only node of a service is the primary, and so is each
 * member that takes part in elections: it starts by itself.
 */
export function roleOf({ nodeId, replication }: Pick<InstanceSpec, "nodeId" | "replication">): MemberRole {
  if (replication === undefined || replication.primaryNodeId === nodeId) return "primary";
  // While a new primary is being chosen, replicas continue; only the old primary must stop.
  return replication.primaryNodeId === "" ? "none" : "replica";
}

/** True if this member may accept writes only while it has the primary lease. */
export function needsPrimaryLease(spec: Pick<InstanceSpec, "nodeId" | "replication" | "running">): boolean {
  return spec.running && spec.replication?.underPrimaryLease === true && roleOf(spec) === "primary";
}

/** The other members that may be promoted without this one's consent, so each must confirm its lease. */
export function votersOf({ nodeId, replication }: Pick<InstanceSpec, "nodeId" | "replication">): Member[] {
  const { members = [], voters = [] } = replication ?? {};
  return members.filter((member) => member.nodeId !== nodeId && voters.includes(member.nodeId));
}

/** The instance's own entry in the list of members; undefined for a single node. */
export function ownMember({ spec }: Pick<Instance, "spec">): Member | undefined {
  return membersOf(spec).find(({ nodeId }) => nodeId === spec.nodeId);
}

/** Members of the service except this one. */
export function otherMembers({ spec }: Pick<Instance, "spec">): Member[] {
  return membersOf(spec).filter(({ nodeId }) => nodeId !== spec.nodeId);
}

/** The member to follow; undefined for the primary itself. Throws while the primary has no address. */
export function leaderOf({ spec }: Pick<Instance, "spec">): Member | undefined {
  if (roleOf(spec) !== "replica") return undefined;
  const leader = spec.replication?.members.find(({ nodeId }) => nodeId === spec.replication?.primaryNodeId);
  if (leader === undefined || leader.address === "") throw new Error("The settings contain no address of the primary.");
  return leader;
}
