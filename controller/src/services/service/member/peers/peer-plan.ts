import type { ManagedServiceObject, NodeSpec } from "../../managed-service.ts";
import type { ObservedNode, ObservedService, ServiceStep } from "../../reconcile/observed-service.ts";
import { isStaying, numberOf } from "../members.ts";
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
  return nodes.flatMap((seen) => {
    const { node } = seen;
    if (node.leaving === true) return planLeaving(seen, report, planNode);
    const own = planNode(seen);
    if (service.spec.power === "off") return own;
    if (isForming(service)) return hasAddresses ? own : own.filter(isPreparation);
    if (node.joining === true) {
      const mayJoin = node.id === next?.id && node.announced === true && report !== undefined;
      return mayJoin ? own : own.filter(isPreparation);
    }
    return own.filter((step) => !isStop(step) || maySpare(service, seen, report));
  });
}

/** The member that joins now: the next one waits until this one is a member. */
function joiningNext({ spec }: ManagedServiceObject): NodeSpec | undefined {
  return spec.nodes.find(({ joining, leaving }) => joining === true && leaving !== true);
}

/** The members that leave, one after the other: none while one joins, which may be the replacement. */
export function leavingOf(service: ManagedServiceObject): NodeSpec[] {
  return joiningNext(service) === undefined ? service.spec.nodes.filter(({ leaving }) => leaving === true) : [];
}

/** Its machine is deleted once the cluster, by the report of its majority, is without it. */
function planLeaving(
  seen: ObservedNode,
  report: ClusterReport | undefined,
  planNode: (node: ObservedNode) => ServiceStep[],
): ServiceStep[] {
  const { node, machine } = seen;
  // Removed before it ever joined: its number may be in no report, and nothing depends on it.
  const isOut = report !== undefined && ![...report.members, ...report.joining].includes(numberOf(node));
  if (machine === undefined) return isOut ? [{ kind: "removeNode", node }] : [];
  if (isOut) return machine.metadata.deletionRequestedAt === undefined ? [{ kind: "deleteMachine", node }] : [];
  return planNode(seen).filter(({ kind }) => kind === "converge");
}

/** Steps of a machine whose engine does not run yet. */
function isPreparation({ kind }: ServiceStep): boolean {
  return kind !== "converge";
}

function isStop(step: ServiceStep): boolean {
  return (step.kind === "converge" && !step.running) || (step.kind === "powerMachine" && step.power === "off");
}

/** True if the member is down already, or the cluster can spare it now. */
function maySpare(service: ManagedServiceObject, seen: ObservedNode, report: ClusterReport | undefined): boolean {
  if (service.status.state !== "Running" || !isPeerInSync(seen)) return true;
  return report?.safeToRestart.includes(numberOf(seen.node)) === true;
}

/** The next step of a rolling update: one member at a time that the cluster can spare, and the leader last. */
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
  if (report === undefined || !spec.nodes.every(isStaying)) return undefined;
  const isWaiting = ({ node }: ObservedNode) => awaitsRollout(spec, node);
  if (!members.every((seen) => isWaiting(seen) || isPeerSettled(service, seen))) return undefined;
  const waiting = members.filter(isWaiting);
  // A restart takes nothing from the cluster where the engine is down, and may bring it back.
  const down = waiting.find((seen) => seen.connected && seen.isCurrent && seen.instance?.state === "failed");
  const isNext = (seen: ObservedNode) => isPeerInSync(seen) && report.safeToRestart.includes(numberOf(seen.node));
  const others = waiting.filter(({ node }) => node.id !== report.leader);
  const last = others.length === 0 ? waiting : [];
  const next = down ?? [...others, ...last].find(isNext);
  return next && { kind: "restart", nodes: [next.node] };
}

/** True if the member runs with the newest settings and takes part in the majority with all its data. */
function isPeerSettled(service: ManagedServiceObject, seen: ObservedNode): boolean {
  return hasNewestSettings(service, seen) && isPeerInSync(seen);
}
