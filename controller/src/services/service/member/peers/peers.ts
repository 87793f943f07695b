import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, NodeSpec } from "../../managed-service.ts";
import type { ObservedService } from "../../reconcile/observed-service.ts";
import type { MemberStrategy } from "../member-strategy.ts";
import { disconnectedAfterMs, numberOf } from "../members.ts";
import { nodeEvent } from "../node-event.ts";
import { withRolloutStep } from "../rolling-update.ts";
import { clusterReportOf, peerReportOf } from "./cluster-report.ts";
import { nextPeerInRollout, planPeers } from "./peer-plan.ts";
import { copiedBy, obstacleOf, removalOf } from "./peer-progress.ts";
import { isForming, isPeerInSync } from "./peer-roles.ts";

/** Members that elect their leader: no terms, no leases and no promotion. A member starts by itself. */
export const peers: MemberStrategy = {
  combine: () => ({}),
  query: async (_service, observed) => observed,
  plan: planPeers,
  note: notePeers,
  advance: (service, observed) => withRolloutStep(service, nextPeerInRollout(service, observed)),
  repair: async () => undefined,
  isRepairing: () => false,
  isSuspect: () => false,
  steps: { restart: "RestartMembers", restartLast: "RestartLeader" },
  obstacle: obstacleOf,
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
 * The service with the members that joined. A first member forms no cluster from its first report on. The cluster
 * counts as formed once all first members have reported, which is stored forever.
 */
function notePeers(
  before: ManagedServiceObject,
  observed: ObservedService,
): { readonly service: ManagedServiceObject; readonly events: readonly NewEvent[] } {
  const report = clusterReportOf(observed.nodes);
  const seenOf = ({ id }: NodeSpec) => observed.nodes.find(({ node }) => node.id === id);
  const forming = isForming(before);
  const events: NewEvent[] = [];
  const nodes = before.spec.nodes.map((node) => {
    const seen = seenOf(node);
    if (seen === undefined || node.joining !== true) return node;
    if (node.forms === true) {
      return peerReportOf(seen)?.isMember === true ? joined(node) : node;
    }
    // The others may have a majority only with it, so they reach it from its first vote on.
    if (node.announced !== true)
      return (seen.machine?.status.address ?? "") === "" ? node : { ...node, announced: true as const };
    if (forming || !isPeerInSync(seen) || report?.members.includes(numberOf(node)) !== true) return node;
    events.push(nodeEvent("node.added", before, node));
    return joined(node);
  });
  const isFormed = !forming || (nodes.every(({ joining }) => joining !== true) && report !== undefined);
  const leader = report?.leader ?? before.status.cluster?.leader ?? "";
  const hasChanged = nodes.some((node, index) => node !== before.spec.nodes[index]);
  // The settings of a member that forms no longer change, and those with a new address or a member that may leave.
  const instanceGeneration = before.spec.instanceGeneration + 1;
  const spec = hasChanged ? { ...before.spec, nodes, instanceGeneration } : before.spec;
  const status = { ...before.status, cluster: { formed: isFormed, leader } };
  return { service: { ...before, spec, status }, events };
}

function joined(node: NodeSpec): NodeSpec {
  const { joining: _joining, forms: _forms, announced: _announced, ...rest } = node;
  return rest;
}
