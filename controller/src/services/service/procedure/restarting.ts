import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject, PrimaryChange } from "../managed-service.ts";
import { abortedRolloutError, abortRollout, rolloutFault } from "../member/rollout-fault.ts";
import { isImagePinned } from "../canary/node-image.ts";
import type { ObservedService } from "../reconcile/observed-service.ts";
import { convergeToSpec } from "./converge-to-spec.ts";
import type { Procedure, StepProgress } from "./procedure.ts";
import { awaitsRollout } from "../member/rollout-state.ts";
import { isLeader } from "../member/member-roles.ts";
import { strategyOf } from "../member/strategies.ts";

/** Restarts the engine of a single node, or of several by a rolling update with a switchover. */
export const restarting: Procedure = {
  ...convergeToSpec,
  progress: (service, observed, operation) =>
    rolloutProgress(service, observed, operation) ?? convergeToSpec.progress(service, observed, operation),
  fault: rolloutFault,
  rollBack: abortRollout,
  rolledBackFault: abortedRolloutError,
};

/** Progress of a rolling update; undefined if no node awaits one. */
export function rolloutProgress(
  service: ManagedServiceObject,
  observed: ObservedService,
  { status }: OperationObject,
): StepProgress | undefined {
  const { spec } = service;
  if (spec.primaryChange !== undefined)
    return { ...primaryChangeProgress(spec.primaryChange, observed), progressPct: 80 };
  const pending = spec.nodes.filter((node) => awaitsRollout(spec, node));
  if (pending.length === 0) return undefined;
  const isImage = pending.some((node) => isImagePinned(spec, node));
  if (status.rollback !== undefined) return { step: isImage ? "RollBackImage" : "RollBackNodes", progressPct: 90 };
  const isLast = pending.every((node) => isLeader(service, node));
  const { steps } = strategyOf(service);
  const share = 1 - pending.length / spec.nodes.length;
  return {
    step: isLast ? steps.restartLast : isImage ? "ReplaceImage" : steps.restart,
    progressPct: 10 + Math.floor(70 * share),
  };
}

/**
 * Progress of a primary change. While the new primary is silent it is unknown whether it took a write, so the
 * change waits without a deadline.
 */
export function primaryChangeProgress(
  { step, to, hasPromoted }: PrimaryChange,
  { nodes }: Pick<ObservedService, "nodes">,
): StepProgress {
  // No deadline: a replica that could become the primary may return at any time.
  if (step === "fence") return { step: "FencePrimary", progressPct: 20, waits: true };
  if (step === "yield") return { step: "StopPrimary", progressPct: 20 };
  if (step === "recall") return { step: "RecallReplica", progressPct: 50, waits: true };
  const isSilent = !nodes.some(({ node, connected, isCurrent }) => node.id === to && connected && isCurrent);
  return { step: "PromoteReplica", progressPct: 50, ...((isSilent || hasPromoted) && { waits: true }) };
}
