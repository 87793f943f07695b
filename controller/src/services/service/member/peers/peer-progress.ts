import type { ManagedServiceObject, NodeSpec } from "../../managed-service.ts";
import type { ObservedNode, ObservedService } from "../../reconcile/observed-service.ts";
import type { StepProgress } from "../../procedure/procedure.ts";
import { disconnectedAfterMs, numberOf } from "../members.ts";
import { awaitsRollout } from "../rollout-state.ts";
import { clusterReportOf, clusterReportOfMember } from "./cluster-report.ts";
import { isForming, isPeerInSync } from "./peer-roles.ts";

/**
 * Name of the step that explains why no member changes, once a member has been missing for longer than an election or a
 * restart takes.
 */
export function waitStepOf(service: ManagedServiceObject, { nodes }: ObservedService): string | undefined {
  const { spec, status } = service;
  const isAway = nodes.some(({ disconnectedMs = 0 }) => disconnectedMs >= disconnectedAfterMs);
  if (isForming(service) || spec.power === "off" || status.state !== "Running" || !isAway) return undefined;
  const report = clusterReportOf(nodes);
  if (report === undefined) return "WaitForMajority";
  const waiting = nodes.filter((member) => awaitsRollout(spec, member.node) && isPeerInSync(member));
  const isBlocked = waiting.every(({ node }) => !report.safeToRestart.includes(numberOf(node)));
  return waiting.length > 0 && isBlocked ? "WaitForMember" : undefined;
}

/** Disk usage of a joining member as a share of the largest other member's, from 0 to 1. */
export function copiedBy({ nodes }: ObservedService, { node, instance }: ObservedNode): number {
  const others = nodes.filter((each) => each.node.id !== node.id).map((each) => Number(each.instance?.dataBytes ?? 0n));
  return Math.min(1, Number(instance?.dataBytes ?? 0n) / Math.max(1, ...others));
}

/** Progress of a removal: the member's data move to the others, then its machine is deleted. */
export function removalOf({ nodes }: ObservedService, node: NodeSpec | undefined): StepProgress {
  const member = nodes.find((each) => each.node.id === node?.id);
  const drains = nodes.flatMap((each) => clusterReportOfMember(each)?.leaving ?? []);
  const drain = member && drains.find(({ number }) => number === numberOf(member.node));
  if (drain === undefined) {
    const isOut = member !== undefined && clusterReportOf(nodes)?.members.includes(numberOf(member.node)) === false;
    return isOut ? { step: "RemoveServer", progressPct: 80 } : { step: "DrainMember", progressPct: 5 };
  }
  const remaining = Number(drain.remainingBytes);
  const total = Math.max(1, remaining, Number(member?.instance?.dataBytes ?? 0n));
  return { step: "DrainMember", progressPct: 5 + Math.floor(70 * (1 - remaining / total)) };
}
