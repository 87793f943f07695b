import type { ManagedServiceObject, NodeSpec } from "../../managed-service.ts";
import type { ObservedNode, ObservedService, ServiceStep } from "../../reconcile/observed-service.ts";
import { isEstablished, numberOf } from "../members.ts";
import { rollingStep, type RolloutStep } from "../rolling-update.ts";
import { awaitsRollout, hasNewestSettings } from "../rollout-state.ts";
import { type ClusterReport, clusterReportOf } from "./cluster-report.ts";
import { isForming, isPeerInSync } from "./peer-roles.ts";

/**
 * The steps of all members. The cluster is formed once all first members have addresses. Later one member changes
 * at a time: the first that joins, or one that leaves after its data have moved, or the next of a rolling update.
 */
export function planPeers(
  service: ManagedServiceObject,
  observed: ObservedService,
  planNode: (node: ObservedNode) => ServiceStep[],
): ServiceStep[] {
  const { nodes } = observed;
  const report = clusterReportOf(nodes);
  const hasAddresses = nodes.every(({ machine }) => (machine?.status.address ?? "") !== "");
  const next = joiningNext(service);
  return nodes.flatMap((member) => {
    const { node } = member;
    if (node.leaving === true) return planLeaving(member, report, planNode);
    const steps = planNode(member);
    if (service.spec.power === "off") return steps;
    if (isForming(service) && node.forms === true) return hasAddresses ? steps : steps.filter(isPreparation);
    if (node.joining === true) {
      const mayJoin = !isForming(service) && node.id === next?.id && node.announced === true && report !== undefined;
      return mayJoin ? steps : steps.filter(isPreparation);
    }
    return steps.filter((step) => !isStop(step) || maySpare(service, member, report));
  });
}

/** The member that joins now. Members join one after another. */
function joiningNext({ spec }: ManagedServiceObject): NodeSpec | undefined {
  return spec.nodes.find(({ joining, leaving }) => joining === true && leaving !== true);
}

/** The members that leave; none while another joins, because it may be the replacement. */
export function leavingOf(service: ManagedServiceObject): NodeSpec[] {
  return joiningNext(service) === undefined ? service.spec.nodes.filter(({ leaving }) => leaving === true) : [];
}

/** Steps of a leaving member. Its machine is deleted once the majority reports a cluster without the member. */
function planLeaving(
  member: ObservedNode,
  report: ClusterReport | undefined,
  planNode: (node: ObservedNode) => ServiceStep[],
): ServiceStep[] {
  const { node, machine } = member;
  // A member that is removed before it joined may be in no report, and no other member depends on it.
  const isOut = report !== undefined && ![...report.members, ...report.joining].includes(numberOf(node));
  if (machine === undefined) return isOut ? [{ kind: "removeNode", node }] : [];
  if (isOut) return machine.metadata.deletionRequestedAt === undefined ? [{ kind: "deleteMachine", node }] : [];
  return planNode(member).filter(({ kind }) => kind === "converge");
}

/** Steps of a machine whose engine does not run yet. */
function isPreparation({ kind }: ServiceStep): boolean {
  return kind !== "converge";
}

function isStop(step: ServiceStep): boolean {
  return (step.kind === "converge" && !step.running) || (step.kind === "powerMachine" && step.power === "off");
}

/** True if the member is already down, or the majority reports that it may stop. */
function maySpare(service: ManagedServiceObject, member: ObservedNode, report: ClusterReport | undefined): boolean {
  if (service.status.state !== "Running" || !isPeerInSync(member)) return true;
  return report?.safeToRestart.includes(numberOf(member.node)) === true;
}

/** The next step of a rolling update: one member at a time that may stop, and the leader last. */
export function nextPeerInRollout(service: ManagedServiceObject, observed: ObservedService): RolloutStep | undefined {
  return rollingStep(service, observed, nextMember);
}

function nextMember(
  service: ManagedServiceObject,
  { nodes }: ObservedService,
  members: readonly ObservedNode[],
): RolloutStep | undefined {
  const { spec } = service;
  const report = clusterReportOf(nodes);
  if (report === undefined || !spec.nodes.every(isEstablished)) return undefined;
  const isWaiting = ({ node }: ObservedNode) => awaitsRollout(spec, node);
  if (!members.every((member) => isWaiting(member) || isPeerSettled(service, member))) return undefined;
  const waiting = members.filter(isWaiting);
  // A member whose engine failed may always restart, which may also repair it.
  const down = waiting.find((member) => member.connected && member.isCurrent && member.instance?.state === "failed");
  const isNext = (member: ObservedNode) => isPeerInSync(member) && report.safeToRestart.includes(numberOf(member.node));
  const others = waiting.filter(({ node }) => node.id !== report.leader);
  const last = others.length === 0 ? waiting : [];
  const next = down ?? [...others, ...last].find(isNext);
  return next && { kind: "restart", nodes: [next.node] };
}

/** True if the member runs with the newest settings and takes part in the majority with all its data. */
function isPeerSettled(service: ManagedServiceObject, member: ObservedNode): boolean {
  return hasNewestSettings(service, member) && isPeerInSync(member);
}
