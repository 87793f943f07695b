import { isUp } from "#fleet/machine/machine.ts";
import { isFinished, type OperationObject } from "#operation/operation.ts";
import { endedEvent } from "../../maintenance/maintenance-events.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { abortedRolloutError, abortRollout, rolloutFault } from "../member/rollout-fault.ts";
import { isUpgraded } from "../reconcile/managed-service-plan.ts";
import type { ObservedService } from "../reconcile/observed-service.ts";
import {
  maintenanceRecordAfter,
  rollBack,
  rollbackError,
  canaryFault,
  withSnapshotOutcome,
} from "../canary/image-canary.ts";
import { hasDifferentImage } from "../canary/node-image.ts";
import { recoveryAdvice } from "../canary/rollback-plan.ts";
import { imageRolloutFault, isImageRolledOut, retainsNewImage, rollBackImages } from "../canary/image-rollout.ts";
import { convergeToSpec } from "./converge-to-spec.ts";
import type { Procedure, StepProgress } from "./procedure.ts";
import { restarting } from "./restarting.ts";
import { maintenanceWorkOf, replacementOf, replacementOutcomeOf } from "../service-operations.ts";

/**
 * Applies updates: parameters by a restart of the engine, an image or kernel while the machine is stopped, and a newer
 * keeper by a restart of the machine.
 */
export const maintenance: Procedure = {
  ...convergeToSpec,
  progress: maintenanceProgress,
  isComplete: (service, observed, operation) =>
    (!isRolling(operation) || isImageRolledOut(service, observed, operation)) &&
    convergeToSpec.isComplete(service, observed, operation),
  fault(observed, operation, now, service) {
    if (isRestart(operation)) return rolloutFault(observed, operation, now, service);
    return isRolling(operation)
      ? imageRolloutFault(observed, operation, now, service)
      : canaryFault(observed, operation, now, service);
  },
  rollBack(service, operation, fault, now, observed) {
    if (isRestart(operation)) return abortRollout(service, operation, fault, now);
    return isRolling(operation)
      ? rollBackImages(service, operation, fault, now, observed)
      : rollBack(service, operation, fault, now);
  },
  rolledBackFault(operation, service) {
    if (isRestart(operation)) return abortedRolloutError(operation);
    return isRolling(operation) && retainsNewImage(service, operation) ? undefined : rollbackError(operation);
  },
  recordResults: withSnapshotOutcome,
  onEnd(service, operation, now) {
    const memory = maintenanceRecordAfter(operation, service.status.maintenance, now);
    const after = { ...service, status: { ...service.status, maintenance: memory } };
    const event = endedEvent(after, operation);
    return { after, events: event === undefined ? [] : [event] };
  },
  advice: (operation) =>
    replacementOf(operation) === undefined || operation.status.rollback === undefined
      ? undefined
      : recoveryAdvice(replacementOutcomeOf(operation)?.snapshot, maintenanceWorkOf(operation)?.restorePoint),
  upgrade: {
    isInFlight: (operation, { spec, status }) =>
      !isRolling(operation) &&
      (startsMachines(operation) ||
        (replacementOf(operation) !== undefined && (spec.canary !== undefined || status.state === "Upgrading"))),
    isComplete: isUpgraded,
  },
};

/** True if the operation changes only parameters or keepers, so that there is no image to roll back. */
function isRestart(operation: OperationObject): boolean {
  return replacementOf(operation) === undefined;
}

/** True while the operation starts all machines again without another change. */
function startsMachines(operation: OperationObject | undefined): boolean {
  if (operation === undefined || isFinished(operation)) return false;
  return maintenanceWorkOf(operation)?.startsMachines === true;
}

/** True if the operation applies images or starts to one node after another. */
function isRolling(operation: OperationObject | undefined): boolean {
  return operation !== undefined && maintenanceWorkOf(operation)?.inRollout === true;
}

function maintenanceProgress(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject,
): StepProgress {
  const replacement = replacementOf(operation);
  if (isRolling(operation)) return restarting.progress(service, observed, operation);
  if (startsMachines(operation)) return replacementProgress(service, observed, "StartServer");
  if (replacement === undefined) return restarting.progress(service, observed, operation);
  const what = replacement.image === null ? "GuestKernel" : "Image";
  const step = operation.status.rollback === undefined ? {} : { step: `RollBack${what}` };
  const upgradesData = replacement.version !== undefined && operation.status.rollback === undefined;
  return { ...replacementProgress(service, observed, `Replace${what}`, upgradesData), ...step };
}

/** Progress of a change of image or kernel: stop, replace, start. */
function replacementProgress(
  service: ManagedServiceObject,
  observed: ObservedService,
  replacing: string,
  upgradesData = false,
): StepProgress {
  const { nodes } = observed;
  const behind = nodes.filter(({ machine }) => machine !== undefined && hasDifferentImage(service, machine));
  if (behind.some(({ machine }) => machine?.spec.power === "on")) return { step: "StopEngine", progressPct: 10 };
  if (behind.length > 0) return { step: "StopServer", progressPct: 30 };
  if (nodes.some(({ machine }) => machine === undefined || !isUp(machine))) return { step: replacing, progressPct: 50 };
  if (nodes.some(({ connected, isCurrent }) => !connected || !isCurrent))
    return { step: "SetupAgent", progressPct: 60 };
  if (upgradesData && nodes.some(({ instance }) => instance?.state === "preparing"))
    return { step: "UpgradeData", progressPct: 70 };
  return { step: "ProvisioningHealth", progressPct: 80 };
}
