import type { ManagedServiceObject, NodeSpec } from "../../managed-service.ts";
import type { ObservedNode, ObservedService } from "../../reconcile/observed-service.ts";
import type { StepProgress } from "../../procedure/procedure.ts";
import { disconnectedAfterMs, numberOf } from "../members.ts";
import { awaitsRollout } from "../rollout-state.ts";
import { clusterReportOf, peerReportOf } from "./cluster-report.ts";
import { isForming, isPeerInSync } from "./peer-roles.ts";

/**
 * The reason why no member changes, as a step, once a member has been away for longer than an election or a
 * restart takes.
 */
export function obstacleOf(service: ManagedServiceObject, { nodes }: ObservedService): string | undefined {
  const { spec, status } = service;
  const isAway = nodes.some(({ disconnectedMs = 0 }) => disconnectedMs >= disconnectedAfterMs);
  if (isForming(service) || spec.power === "off" || status.state !== "Running" || !isAway) return undefined;
  const report = clusterReportOf(nodes);
  if (report === undefined) return "WaitForMajority";
  const waiting = nodes.filter((seen) => awaitsRollout(spec, seen.node) && isPeerInSync(seen));
  const isBlocked = waiting.every(({ node }) => !report.safeToRestart.includes(numberOf(node)));
  return waiting.length > 0 && isBlocked ? "WaitForMember" : undefined;
}

/** The disk space that a joining member uses, as a share of what the largest other member uses. */
export function copiedBy({ nodes }: ObservedService, { node, instance }: ObservedNode): number {
  const others = nodes.filter((each) => each.node.id !== node.id).map((each) => Number(each.instance?.dataBytes ?? 0n));
  return Math.min(1, Number(instance?.dataBytes ?? 0n) / Math.max(1, ...others));
}

/** Progress of a removal: the member's data move to the others, then its machine is deleted. */
export function removalOf({ nodes }: ObservedService, node: NodeSpec | undefined): StepProgress {
  const seen = nodes.find((each) => each.node.id === node?.id);
  const drains = nodes.flatMap((each) => peerReportOf(each)?.leaving ?? []);
  const drain = seen && drains.find(({ number }) => number === numberOf(seen.node));
  if (drain === undefined) {
    const isOut = seen !== undefined && clusterReportOf(nodes)?.members.includes(numberOf(seen.node)) === false;
    return isOut ? { step: "RemoveServer", progressPct: 80 } : { step: "DrainMember", progressPct: 5 };
  }
  const remaining = Number(drain.remainingBytes);
  const total = Math.max(1, remaining, Number(seen?.instance?.dataBytes ?? 0n));
  return { step: "DrainMember", progressPct: 5 + Math.floor(70 * (1 - remaining / total)) };
}
