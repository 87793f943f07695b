import { isUp } from "#fleet/machine/machine.ts";
import {
  isOver,
  maintenanceWorkOf,
  type OperationObject,
  replacementOf,
  replacementOutcomeOf,
} from "#operation/operation.ts";
import { endedEvent } from "../maintenance-events.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { endedTurnsError, endTurns, turnFault } from "../member/turn-fault.ts";
import { isUpgraded } from "../managed-service-plan.ts";
import type { ObservedService } from "../observed-service.ts";
import { memoryAfter, rollBack, rollbackError, trialFault, withSnapshot } from "../trial/image-trial.ts";
import { hasOtherImage } from "../trial/other-image.ts";
import { recoveryAdvice } from "../trial/way-back.ts";
import { imageTurnFault, isInPlace, keptImage, rollBackImages } from "../trial/images-in-turn.ts";
import { holdToSpec } from "./hold-to-spec.ts";
import type { Procedure, StepProgress } from "./procedure.ts";
import { restarting } from "./restarting.ts";

/**
 * Parameters come with a restart, another image or kernel under the data of a machine that is stopped meanwhile, a newer keeper with
 * the machine's start.
 */
export const maintenance: Procedure = {
  ...holdToSpec,
  progress: maintenanceProgress,
  isReached: (service, observed, operation) =>
    (!isRolling(operation) || isInPlace(service, observed, operation)) &&
    holdToSpec.isReached(service, observed, operation),
  fault(observed, operation, now, service) {
    if (isRestart(operation)) return turnFault(observed, operation, now, service);
    return isRolling(operation)
      ? imageTurnFault(observed, operation, now, service)
      : trialFault(observed, operation, now, service);
  },
  rollBack(service, operation, fault, now, observed) {
    if (isRestart(operation)) return endTurns(service, operation, fault, now);
    return isRolling(operation)
      ? rollBackImages(service, operation, fault, now, observed)
      : rollBack(service, operation, fault, now);
  },
  rolledBackFault(operation, service) {
    if (isRestart(operation)) return endedTurnsError(operation);
    return isRolling(operation) && keptImage(service, operation) ? undefined : rollbackError(operation);
  },
  note: withSnapshot,
  ended(service, operation, now) {
    const memory = memoryAfter(operation, service.status.maintenance, now);
    const after = { ...service, status: { ...service.status, maintenance: memory } };
    const event = endedEvent(after, operation);
    return { after, events: event === undefined ? [] : [event] };
  },
  advice: (operation) =>
    replacementOf(operation) === undefined || operation.status.rollback === undefined
      ? undefined
      : recoveryAdvice(replacementOutcomeOf(operation)?.snapshot, maintenanceWorkOf(operation)?.restorePoint),
  upgrade: {
    isUnderWay: (operation, { spec, status }) =>
      !isRolling(operation) &&
      (startsMachines(operation) ||
        (replacementOf(operation) !== undefined && (spec.trial !== undefined || status.state === "Upgrading"))),
    isDone: isUpgraded,
  },
};

/** Does it bring parameters only, or newer keepers, so that nothing could be rolled back? */
function isRestart(operation: OperationObject): boolean {
  return replacementOf(operation) === undefined;
}

/** Are machines started again as they are, as long as it is at it? */
function startsMachines(operation: OperationObject | undefined): boolean {
  if (operation === undefined || isOver(operation)) return false;
  return maintenanceWorkOf(operation)?.startsMachines === true;
}

/** Does its image, or a start of its machine, come to one node after another? */
function isRolling(operation: OperationObject | undefined): boolean {
  return operation !== undefined && maintenanceWorkOf(operation)?.inTurn === true;
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

/** Another image or kernel comes under the data: down, and up again. */
function replacementProgress(
  service: ManagedServiceObject,
  observed: ObservedService,
  replacing: string,
  upgradesData = false,
): StepProgress {
  const { nodes } = observed;
  const behind = nodes.filter(({ machine }) => machine !== undefined && hasOtherImage(service, machine));
  if (behind.some(({ machine }) => machine?.spec.power === "on")) return { step: "StopEngine", progressPct: 10 };
  if (behind.length > 0) return { step: "StopServer", progressPct: 30 };
  if (nodes.some(({ machine }) => machine === undefined || !isUp(machine))) return { step: replacing, progressPct: 50 };
  if (nodes.some(({ connected, isCurrent }) => !connected || !isCurrent))
    return { step: "SetupAgent", progressPct: 60 };
  if (upgradesData && nodes.some(({ instance }) => instance?.state === "preparing"))
    return { step: "UpgradeData", progressPct: 70 };
  return { step: "ProvisioningHealth", progressPct: 80 };
}
