import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import type { ManagedServiceEvent } from "./managed-service-lifecycle.ts";
import { faultOf, isHealthy, isUpgraded, servesByItsPrimary } from "./managed-service-plan.ts";
import type { ObservedService } from "./observed-service.ts";
import { mayFailOver } from "./member/suspicion.ts";
import type { Upgrade } from "./procedure/procedure.ts";
import { procedureOf } from "./procedure/procedures.ts";

/** Of an operation that upgrades nothing, in a service that an earlier one may have left Upgrading. */
const noUpgrade: Upgrade = { isUnderWay: () => false, isDone: isUpgraded };

/** What the observation means for the life cycle, or undefined when nothing that the table knows. */
export function managedServiceEvent(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
  now: number,
): ManagedServiceEvent | undefined {
  if (service.metadata.deletionRequestedAt !== undefined) return undefined;
  const { state } = service.status;
  const procedure = procedureOf(operation);
  const wantsOn = service.spec.power === "on" && !isHeldDown(observed);
  if (!wantsOn) return state !== "Stopped" && isStopped(observed) ? "stopped" : undefined;
  if (state === "Stopped") return "startRequested";
  if (state === "Error" && procedure.leavesError === true && operation?.status.state === "pending")
    return "startRequested";
  // The operation may be over though the service is Upgrading still.
  const { isUnderWay, isDone } = procedure.upgrade ?? noUpgrade;
  const isUpgrade = isUnderWay(operation, service);
  if (state === "Running" && isUpgrade) return isDone(service, observed, operation) ? undefined : "upgradeStarted";
  // A primary that does not come up is the succession's to answer, as is one that another member takes the place of.
  const isReplaced = service.spec.succession !== undefined || mayFailOver(service, observed);
  // An operation that gets nowhere with a replica is no end of a service whose primary serves.
  const answersFor = state === "Running" && servesByItsPrimary(service, observed) ? undefined : operation;
  const fault = isReplaced ? undefined : faultOf(observed, answersFor, now);
  if (state === "Upgrading") {
    if (isDone(service, observed, operation)) return "upgradeEnded";
    // A change that does not work is rolled back first.
    const isTried = isUpgrade && operation?.status.rollback === undefined;
    return fault === undefined || isTried ? undefined : "failed";
  }
  if (fault !== undefined) {
    if (state === "Running") return "failed";
    return state === "Error" ? undefined : "provisioningFailed";
  }
  if (state === "Pending")
    return observed.nodes.some(({ machine }) => machine !== undefined) ? "provisioningStarted" : undefined;
  return state !== "Running" && isHealthy(service, observed) ? "becameHealthy" : undefined;
}

/** Is the service stopped for maintenance of a host? */
function isHeldDown(observed: ObservedService): boolean {
  return observed.nodes.some(({ isHeld }) => isHeld);
}

/** Is everything shut down as asked? */
function isStopped(observed: ObservedService): boolean {
  return observed.nodes.every(({ machine }) => machine?.spec.power === "off" && machine.status.state === "stopped");
}
