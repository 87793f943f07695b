import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { isPrimary } from "../member/members.ts";
import { endedTurnsError, endTurns, turnFault } from "../member/turn-fault.ts";
import { awaitsTurn } from "../member/turns.ts";
import { keepsOtherImage } from "../trial/other-image.ts";
import type { ObservedService } from "../observed-service.ts";
import { holdToSpec } from "./hold-to-spec.ts";
import type { Procedure, StepProgress } from "./procedure.ts";
import { successionProgress } from "./succession-progress.ts";

/** The engine of a single node restarts; of several the replicas do one after another, and the primary by a switchover. */
export const restarting: Procedure = {
  ...holdToSpec,
  progress: (service, observed, operation) =>
    turnProgress(service, observed, operation) ?? holdToSpec.progress(service, observed, operation),
  fault: turnFault,
  rollBack: endTurns,
  rolledBackFault: endedTurnsError,
};

/** Pure: where the way through the nodes is; undefined where nobody waits for a turn. */
export function turnProgress(
  service: ManagedServiceObject,
  observed: ObservedService,
  { status }: OperationObject,
): StepProgress | undefined {
  const { spec } = service;
  if (spec.succession !== undefined) return { ...successionProgress(spec.succession, observed), progressPct: 80 };
  const behind = spec.nodes.filter((node) => awaitsTurn(spec, node));
  if (behind.length === 0) return undefined;
  const isImage = behind.some((node) => keepsOtherImage(spec, node));
  if (status.rollback !== undefined) return { step: isImage ? "RollBackImage" : "RollBackNodes", progressPct: 90 };
  const isLast = behind.every((node) => isPrimary(service, node));
  const share = 1 - behind.length / spec.nodes.length;
  return {
    step: isLast ? "SwitchOver" : isImage ? "ReplaceImage" : "RestartReplicas",
    progressPct: 10 + Math.floor(70 * share),
  };
}
