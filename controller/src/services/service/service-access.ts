import type { Call } from "@holdfast/common/call.ts";
import { familyOf, type ServiceFamily } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { mayTouch, organizationOf } from "#access/caller.ts";
import { findOperation, isFinished, type OperationObject } from "#operation/operation.ts";
import { operationMembers } from "./operation-members.ts";
import { refuseWhileBusy } from "./service-commands.ts";
import { definePart } from "#kernel/part.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ManagedServiceObject } from "./managed-service.ts";

/** Finds services for a caller. Services of other organizations are not found. */
export interface ServiceAccess {
  /** The service; undefined if it does not exist, or is not accessible to the caller. */
  find(id: string, call: Call): Stored<ManagedServiceObject> | undefined;
  /** The service. Throws SERVICE_NOT_FOUND. */
  require(id: string, call: Call): Stored<ManagedServiceObject>;
  /** The service. Throws SERVICE_NOT_FOUND, and WRONG_STATE unless the service is Running. */
  requireRunning(id: string, call: Call): Stored<ManagedServiceObject>;
  inProgress(service: ManagedServiceObject, signal: AbortSignal): Promise<Stored<OperationObject> | undefined>;
}

export const serviceAccessPart = definePart<ServiceAccess>("access to services");

/** Services are found in memory, without a call to the store. */
export function createServiceAccess(deps: {
  services: Collection<ManagedServiceObject>;
  operations: Collection<OperationObject>;
  /** Services of other families are not found. Databases by default. */
  family?: ServiceFamily;
}): ServiceAccess {
  const { family = "databases" } = deps;
  const find = (id: string, call: Call) => {
    const organizationId = organizationOf(call);
    const service = deps.services.get(id);
    if (service === undefined || familyOf(service.object.spec.databaseType) !== family) return undefined;
    const isOfOrganization = service.object.metadata.organizationId === organizationId;
    return isOfOrganization && mayTouch(call, "managed-service", id) ? service : undefined;
  };
  const require = (id: string, call: Call) => {
    const service = find(id, call);
    if (service === undefined)
      throw new HoldfastError("SERVICE_NOT_FOUND", "There is no such service in the organization.");
    return service;
  };
  const unlessOver = (operation: Stored<OperationObject> | undefined) =>
    operation === undefined || isFinished(operation.object) ? undefined : operation;
  return {
    find,
    require,
    inProgress: async (service, signal) =>
      unlessOver(await findOperation(deps.operations, service.status.operationId, signal)),
    requireRunning(id, call) {
      const service = require(id, call);
      const { state } = service.object.status;
      const { metadata, spec } = service.object;
      const current = unlessOver(deps.operations.get(service.object.status.operationId ?? ""));
      // A stopping service is Running until its machine has stopped, but accepts no changes.
      if (state === "Running" && spec.power === "on" && metadata.deletionRequestedAt === undefined) return service;
      if (state === "Running") refuseWhileBusy(service.object, current?.object);
      const remedy = state === "Stopped" ? " Start it first." : "";
      const detail = `The service must be Running; it is ${state}.${remedy}`;
      throw new HoldfastError("WRONG_STATE", detail, { members: operationMembers(service.object, current?.object) });
    },
  };
}
