import type { FieldFault } from "@holdfast/common/errors.ts";
import { HoldfastError, pointerOf } from "@holdfast/common/errors.ts";
import type { CreateManagedServiceRequest } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { type CatalogData, defaultStorageTier } from "../catalog/catalog.ts";
import type { EngineOffer } from "../catalog/engine-offer.ts";
import { newOperation, type OperationObject } from "../operation/operation.ts";
import { canonicalCidrs } from "./allowed-cidrs.ts";
import type { ManagedServiceObject, ManagedServiceSpec } from "./managed-service.ts";
import { hostnameOf, nodeHostnameOf } from "./service-names.ts";
import { reservedNames } from "./reserved-names.ts";

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

/** Pure: the service and its first operation, or INVALID_REQUEST naming every field that is wrong. */
export function newService(
  request: CreateManagedServiceRequest,
  context: NewServiceContext,
): { service: ManagedServiceObject; operation: OperationObject } {
  const { serviceId, nodeId, operationId, organizationId, now } = context;
  const spec = specOf(request, context);
  const service: ManagedServiceObject = {
    metadata: { id: serviceId, name: request.name, organizationId, generation: 1, createdAt: now, updatedAt: now },
    spec,
    status: {
      state: "Pending",
      operationId,
      primaryNodeId: nodeId,
      term: 1,
      nodes: [{ id: nodeId, status: "Provisioning", address: "" }],
      health: { status: "unknown", since: now, reason: "The machine is being made.", checks: [] },
      error: null,
      observedGeneration: 0,
      expiryWarnings: [],
      announcedProtectedExpiry: false,
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

function specOf(request: CreateManagedServiceRequest, context: NewServiceContext): ManagedServiceSpec {
  const { catalog, engines, now } = context;
  const faults: FieldFault[] = [];
  const fault = (field: string, code: string, detail: string) =>
    faults.push({ field, pointer: pointerOf(field), code, detail });
  const oneOf = (names: readonly string[]) => `must be one of ${names.join(", ")}`;

  if (reservedNames.has(request.name))
    fault("name", "reserved", "is a word of the API's own paths; choose another name");
  const engine = engines.find(({ databaseType }) => databaseType === request.databaseType);
  if (engine === undefined) fault("database_type", "unknown", oneOf(engines.map(({ databaseType }) => databaseType)));
  const version = request.version ?? engine?.defaultVersion ?? "";
  const offered = engine?.versions.find((candidate) => candidate.version === version);
  if (engine !== undefined && offered === undefined) {
    fault("version", "unknown", oneOf(engine.versions.map((candidate) => candidate.version)));
  } else if (offered?.available === false) {
    fault("version", "unavailable", `cannot run here: ${offered.reason ?? "its image is missing"}`);
  }
  if (!catalog.plans.some(({ planName }) => planName === request.planName)) {
    fault("plan_name", "unknown", oneOf(catalog.plans.map(({ planName }) => planName)));
  }
  const storageTier = request.storageTier ?? defaultStorageTier;
  if (!catalog.storageTiers.some((tier) => tier.storageTier === storageTier)) {
    fault("storage_tier", "unknown", oneOf(catalog.storageTiers.map((tier) => tier.storageTier)));
  }
  const zone = request.zone ?? catalog.zones[0]?.zone ?? "";
  if (!catalog.zones.some((candidate) => candidate.zone === zone)) {
    fault("zone", "unknown", oneOf(catalog.zones.map((candidate) => candidate.zone)));
  }
  const networks = canonicalCidrs(request.allowedCidrs?.values ?? context.defaultAllowedCidrs);
  faults.push(...networks.faults);
  const parameters: Record<string, string> = {};
  for (const [name, text] of Object.entries(request.parameters)) {
    const checked = engine?.checkParameter(version, name, text);
    if (checked === undefined) continue;
    if (checked.ok) parameters[name] = checked.value;
    else fault(`parameters.${name}`, checked.code, checked.detail);
  }
  if (faults.length > 0 || engine === undefined) {
    throw new HoldfastError("INVALID_REQUEST", faults.map(({ field, detail }) => `${field} ${detail}`).join("; "), {
      errors: faults,
    });
  }

  const hostname = hostnameOf(request.name, context.shortId, zone, context.domain);
  const ttlHours = request.ttlHours ?? null;
  return {
    databaseType: request.databaseType,
    version,
    planName: request.planName,
    storageSizeGb: request.storageSizeGb,
    storageTier,
    zone,
    allowedCidrs: networks.cidrs,
    parameters,
    ttlHours,
    expiresAt: expiresAt(ttlHours, now),
    deletionProtection: request.deletionProtection,
    tags: { ...request.tags },
    hostname,
    port: engine.port,
    nodes: [{ id: context.nodeId, role: "primary", hostname: nodeHostnameOf(hostname, 1), zone }],
    power: "on",
    restartCount: 0,
    instanceGeneration: 1,
  };
}

/** A time to live counts from the accepted request. */
export function expiresAt(ttlHours: number | null, now: number): number | null {
  return ttlHours === null ? null : now + ttlHours * 3_600_000;
}
