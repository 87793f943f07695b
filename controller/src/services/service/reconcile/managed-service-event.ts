import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ManagedServiceEvent } from "../managed-service-lifecycle.ts";
import { faultOf, isHealthy, isUpgraded, servesWithoutOthers } from "./managed-service-plan.ts";
import type { ObservedService } from "./observed-service.ts";
import type { Upgrade } from "../procedure/procedure.ts";
import { procedureOf } from "../procedure/procedures.ts";
import { strategyOf } from "../member/strategies.ts";

/** Upgrade of an operation that upgrades nothing. An earlier operation may have left the service in Upgrading. */
const noUpgrade: Upgrade = { isInFlight: () => false, isComplete: isUpgraded };

/** The event of the life cycle (`../managed-service-lifecycle.ts`) for this observation; undefined if there is none. */
export function managedServiceEvent(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
  now: number,
): ManagedServiceEvent | undefined {
  if (service.metadata.deletionRequestedAt !== undefined) return undefined;
  const { state } = service.status;
  const procedure = procedureOf(operation);
  const shouldRun = service.spec.power === "on" && !isStoppedForDrain(observed);
  if (!shouldRun) return state !== "Stopped" && isStopped(observed) ? "stopped" : undefined;
  if (state === "Stopped") return "startRequested";
  if (state === "Error" && procedure.retriesError === true && operation?.status.state === "pending")
    return "startRequested";
  // The operation may have ended while the service is still Upgrading.
  const { isInFlight, isComplete: isDone } = procedure.upgrade ?? noUpgrade;
  const isUpgrade = isInFlight(operation, service);
  if (state === "Running" && isUpgrade) return isDone(service, observed, operation) ? undefined : "upgradeStarted";
  // A failed primary is handled by its primary change, or by the failover that is about to start.
  const isReplaced = strategyOf(service).isRepairing(service, observed);
  // An operation that is stuck at a replica does not fail a service whose primary serves clients.
  const failableOperation = state === "Running" && servesWithoutOthers(service, observed) ? undefined : operation;
  const fault = isReplaced ? undefined : faultOf(observed, failableOperation, now);
  if (state === "Upgrading") {
    if (isDone(service, observed, operation)) return "upgradeEnded";
    // A failed change is rolled back first.
    const hasCanary = isUpgrade && operation?.status.rollback === undefined;
    return fault === undefined || hasCanary ? undefined : "failed";
  }
  if (fault !== undefined) {
    if (state === "Running") return "failed";
    return state === "Error" ? undefined : "provisioningFailed";
  }
  if (state === "Pending")
    return observed.nodes.some(({ machine }) => machine !== undefined) ? "provisioningStarted" : undefined;
  return state !== "Running" && isHealthy(service, observed) ? "becameHealthy" : undefined;
}

/** True if the service is stopped because its host is drained. */
function isStoppedForDrain(observed: ObservedService): boolean {
  return observed.nodes.some(({ stoppedForDrain }) => stoppedForDrain);
}

/** True if all machines have stopped as requested. */
function isStopped(observed: ObservedService): boolean {
  return observed.nodes.every(({ machine }) => machine?.spec.power === "off" && machine.status.state === "stopped");
}
