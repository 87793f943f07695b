import assert from "node:assert";
import type { FieldFault } from "@holdfast/common/errors.ts";
import type { CreateManagedServiceRequest } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { CatalogData } from "../catalog/catalog.ts";
import { chooseFromCatalog } from "../catalog/catalog-choice.ts";
import type { EngineOffer } from "../catalog/engine-offer.ts";
import { noMaintenance } from "./maintenance-memory.ts";
import { windowOf } from "./window-message.ts";
import { newOperation, type OperationObject } from "../operation/operation.ts";
import { newMetadata } from "../store/resource.ts";
import { canonicalCidrs } from "./allowed-cidrs.ts";
import type { ManagedServiceObject, ManagedServiceSpec } from "./managed-service.ts";
import { hostnameOf, nodeHostnameOf } from "./service-names.ts";
import { reservedNameFault } from "./reserved-names.ts";

/** What a new service is made of besides the request. */
export interface NewServiceContext {
  readonly organizationId: string;
  readonly serviceId: string;
  readonly nodeId: string;
  readonly operationId: string;
  readonly shortId: string;
  readonly domain: string;
  readonly now: number;
  readonly catalog: CatalogData;
  readonly engines: readonly EngineOffer[];
  readonly defaultAllowedCidrs: readonly string[];
}

/** Pure: the service and its first operation, of a request without faults. */
export function newService(
  request: CreateManagedServiceRequest,
  context: NewServiceContext,
): { service: ManagedServiceObject; operation: OperationObject } {
  const { serviceId, nodeId, operationId, organizationId, now } = context;
  const spec = specOf(request, context);
  const service: ManagedServiceObject = {
    metadata: newMetadata(serviceId, now, { name: request.name, organizationId }),
    spec,
    status: {
      state: "Pending",
      operationId,
      primaryNodeId: nodeId,
      term: 1,
      nodes: [{ id: nodeId, status: "Provisioning", address: "", publicAddress: "" }],
      health: { status: "unknown", since: now, reason: "The machine is being made.", checks: [] },
      error: null,
      observedGeneration: 0,
      expiryWarnings: [],
      announcedProtectedExpiry: false,
      maintenance: noMaintenance,
    },
  };
  const operation = newOperation({
    id: operationId,
    serviceId,
    organizationId,
    type: "create",
    instanceGeneration: 1,
    now,
  });
  return { service, operation };
}

/** Pure: every field that the protos let pass and the catalogue, or the API's own paths, do not. */
export function newServiceFaults(
  request: CreateManagedServiceRequest,
  { catalog, engines }: Pick<NewServiceContext, "catalog" | "engines">,
): readonly FieldFault[] {
  const name = reservedNameFault(request.name);
  return [
    ...(name === undefined ? [] : [name]),
    ...chooseFromCatalog(request, catalog, engines).faults,
    ...canonicalCidrs(request.allowedCidrs?.values ?? []).faults,
  ];
}

function specOf(request: CreateManagedServiceRequest, context: NewServiceContext): ManagedServiceSpec {
  const { catalog, engines, now } = context;
  const { engine, version, storageTier, zone, parameters } = chooseFromCatalog(request, catalog, engines);
  assert(engine !== undefined, "what is asked for was checked against the catalogue");
  const hostname = hostnameOf(request.name, context.shortId, zone, context.domain);
  const ttlHours = request.ttlHours ?? null;
  return {
    databaseType: request.databaseType,
    version,
    planName: request.planName,
    storageSizeGb: request.storageSizeGb,
    storageTier,
    zone,
    allowedCidrs: canonicalCidrs(request.allowedCidrs?.values ?? context.defaultAllowedCidrs).cidrs,
    parameters,
    ttlHours,
    expiresAt: expiresAt(ttlHours, now),
    deletionProtection: request.deletionProtection,
    tags: { ...request.tags },
    hostname,
    port: engine.port,
    nodes: [{ id: context.nodeId, role: "primary", hostname: nodeHostnameOf(hostname, 1), zone }],
    power: "on",
    image: "",
    maintenanceWindow: windowOf(request.maintenanceWindow),
    restartCount: 0,
    instanceGeneration: 1,
  };
}

/** A time to live counts from the accepted request. */
export function expiresAt(ttlHours: number | null, now: number): number | null {
  return ttlHours === null ? null : now + ttlHours * 3_600_000;
}
