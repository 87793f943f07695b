import type { OperationObject } from "#operation/operation.ts";
import {
  isSizedAtRest,
  resizedEvent,
  rollBackSize,
  sizeFault,
  sizeRollbackError,
  withoutResizing,
} from "../../scaling/resize-outcome.ts";
import { hasRequestedSize } from "../../scaling/size-plan.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { restartsOf } from "../member/restarts.ts";
import type { ObservedService } from "../reconcile/observed-service.ts";
import { convergeToSpec } from "./converge-to-spec.ts";
import type { Procedure, StepProgress } from "./procedure.ts";
import { rolloutProgress } from "./restarting.ts";

/** Resizes each machine, and gives its engine the settings that are derived from the size. */
export const resizing: Procedure = {
  ...convergeToSpec,
  progress: sizeProgress,
  isComplete: (service, observed, operation) =>
    isSizedAtRest(service, observed) || convergeToSpec.isComplete(service, observed, operation),
  fault: sizeFault,
  rollBack: rollBackSize,
  rolledBackFault: sizeRollbackError,
  onEnd(service, operation) {
    const after = withoutResizing(service);
    const event = resizedEvent(after, operation);
    return { after, events: event === undefined ? [] : [event] };
  },
};

function sizeProgress(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject,
): StepProgress {
  const { nodes } = observed;
  if (operation.status.rollback !== undefined) return { step: "RollBackSize", progressPct: 90 };
  if (nodes.some(({ machine }) => machine === undefined || !hasRequestedSize(machine)))
    return { step: "ResizeServer", progressPct: 10 };
  const rollout = rolloutProgress(service, observed, operation);
  if (rollout !== undefined) return rollout;
  const { spec } = service;
  const lacksSettings = nodes.some(
    ({ node, instance }) =>
      Number(instance?.generation ?? 0) < spec.instanceGeneration ||
      Number(instance?.restartCount ?? 0) < restartsOf(spec, node).desired,
  );
  if (spec.power === "on" && lacksSettings) return { step: "ConfigureEngine", progressPct: 40 };
  return { step: "ProvisioningHealth", progressPct: 80 };
}
