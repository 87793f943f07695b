import type { Succession } from "../managed-service.ts";
import type { ObservedService } from "../observed-service.ts";
import type { StepProgress } from "./procedure.ts";

/**
 * Pure: where the change from one primary to another is. Of a new primary that is silent nobody knows whether it took a write:
 * that is waited for, however long it takes.
 */
export function successionProgress(
  { step, to, hasPromoted }: Succession,
  { nodes }: Pick<ObservedService, "nodes">,
): StepProgress {
  // No deadline: a replica that could take its place may come back at any time.
  if (step === "fence") return { step: "FencePrimary", progressPct: 20, waits: true };
  if (step === "yield") return { step: "StopPrimary", progressPct: 20 };
  if (step === "recall") return { step: "RecallReplica", progressPct: 50, waits: true };
  const isSilent = !nodes.some(({ node, connected, isCurrent }) => node.id === to && connected && isCurrent);
  return { step: "PromoteReplica", progressPct: 50, ...((isSilent || hasPromoted) && { waits: true }) };
}
