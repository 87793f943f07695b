import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, NodeSpec } from "../../managed-service.ts";
import type { ObservedService } from "../../reconcile/observed-service.ts";
import type { MemberStrategy } from "../member-strategy.ts";
import { disconnectedAfterMs, numberOf } from "../members.ts";
import { nodeEvent } from "../../service-events.ts";
import { withRolloutStep } from "../rolling-update.ts";
import { clusterReportOf, clusterReportOfMember } from "./cluster-report.ts";
import { nextPeerInRollout, planPeers } from "./peer-plan.ts";
import { copiedBy, waitStepOf, removalOf } from "./peer-progress.ts";
import { isForming, isPeerInSync } from "./peer-roles.ts";

/** Members that elect their leader. Controllers use no terms, leases or promotions for them. */
export const peers: MemberStrategy = {
  derive: () => ({}),
  queryMembers: async (_service, observed) => observed,
  plan: planPeers,
  updateStatus: updatePeers,
  advance: (service, observed) => withRolloutStep(service, nextPeerInRollout(service, observed)),
  repair: async () => undefined,
  isRepairing: () => false,
  isSuspect: () => false,
  steps: { restart: "RestartMembers", restartLast: "RestartLeader" },
  obstacle: waitStepOf,
  copied: copiedBy,
  removal: removalOf,
  recheckInMs(_service, { nodes }) {
    const delays = nodes.flatMap(({ disconnectedMs: awayMs }) =>
      awayMs !== undefined && awayMs < disconnectedAfterMs ? [disconnectedAfterMs - awayMs] : [],
    );
    return delays.length === 0 ? null : Math.min(...delays);
  },
};

/**
 * The service with the members that joined. Once a first member has reported its cluster, it cannot form another one.
 * The cluster is formed once all first members have reported; that is stored and never reset.
 */
function updatePeers(
  before: ManagedServiceObject,
  observed: ObservedService,
): { readonly service: ManagedServiceObject; readonly events: readonly NewEvent[] } {
  const report = clusterReportOf(observed.nodes);
  const seenOf = ({ id }: NodeSpec) => observed.nodes.find(({ node }) => node.id === id);
  const forming = isForming(before);
  const events: NewEvent[] = [];
  const nodes = before.spec.nodes.map((node) => {
    const member = seenOf(node);
    if (member === undefined || node.joining !== true) return node;
    if (node.forms === true) {
      return clusterReportOfMember(member)?.isMember === true ? joined(node) : node;
    }
    // The majority may depend on the new member, so the other members must reach it before its first vote.
    if (node.announced !== true)
      return (member.machine?.status.address ?? "") === "" ? node : { ...node, announced: true as const };
    if (forming || !isPeerInSync(member) || report?.members.includes(numberOf(node)) !== true) return node;
    events.push(nodeEvent("node.added", before, node));
    return joined(node);
  });
  const isFormed = !forming || (nodes.every(({ forms }) => forms !== true) && report !== undefined);
  const leader = report?.leader ?? before.status.cluster?.leader ?? "";
  const hasChanged = nodes.some((node, index) => node !== before.spec.nodes[index]);
  // Instance specs change: a formed member must not form a cluster again, and addresses or members have changed.
  const instanceGeneration = before.spec.instanceGeneration + 1;
  const spec = hasChanged ? { ...before.spec, nodes, instanceGeneration } : before.spec;
  const status = { ...before.status, cluster: { formed: isFormed, leader } };
  return { service: { ...before, spec, status }, events };
}

function joined(node: NodeSpec): NodeSpec {
  const { joining: _joining, forms: _forms, announced: _announced, ...rest } = node;
  return rest;
}
