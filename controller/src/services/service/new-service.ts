import assert from "node:assert";
import type { FieldFault } from "@holdfast/common/errors.ts";
import type { CreateManagedServiceRequest } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { chooseFromCatalog } from "#catalog/catalog-choice.ts";
import type { EngineOffer } from "#catalog/engine-offer.ts";
import { noMaintenance } from "../maintenance/maintenance-record.ts";
import { windowOf } from "../maintenance/maintenance-window.ts";
import type { OperationObject } from "#operation/operation.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import { canonicalCidrs } from "./network/allowed-cidrs.ts";
import {
  type ManagedServiceObject,
  type ManagedServiceSpec,
  type NodeSpec,
  type ReplicationMode,
  serviceSubject,
} from "./managed-service.ts";
import { replicationModeFaults, requireReplicationMode } from "./member/primary-replicas/replication/sync-standbys.ts";
import { replicaNode, requireReplicas } from "./member/new-replica.ts";
import { hostnameOf, nodeHostnameOf } from "./network/service-names.ts";
import { autoscaleFault, autoscaleOf, chosenAutoscale } from "../scaling/storage-autoscale.ts";
import { nodeBoundFaults } from "../configuration/node-bounds.ts";
import { chosenPooler, poolerFault } from "./pooler.ts";
import { layoutModeFault } from "./layout-mode.ts";
import { chosenCollation, serverCollationFault } from "./server-collation.ts";
import { privateListenerFault } from "./private-listener.ts";
import { reservedNameFault } from "./network/service-names.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { serviceOperations } from "./service-operations.ts";
import { firstPeer, isCluster, requireMemberCount } from "./member/peers/first-peer.ts";

/** Inputs of a new service in addition to the request. */
export interface NewServiceContext {
  readonly organizationId: string;
  readonly serviceId: string;
  readonly nodeId: string;
  /** Ids for replicas, as many as a service can have. */
  readonly replicaIds: readonly string[];
  readonly operationId: string;
  readonly shortId: string;
  readonly domain: string;
  readonly now: number;
  readonly catalog: CatalogData;
  readonly engines: readonly EngineOffer[];
  readonly defaultAllowedCidrs: readonly string[];
  /** True if machines of all hosts can listen on ports below 1024. */
  readonly lowPorts: boolean;
}

/**
 * The service and its first operation, from a valid request. Throws NOT_SUPPORTED if the engine does not support the
 * requested replicas or replication mode.
 */
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
      primaryNodeId: isCluster(spec.databaseType) ? "" : nodeId,
      term: 1,
      nodes: spec.nodes.map(({ id }) => ({ id, status: "Provisioning", address: "", publicAddress: "" })),
      health: { status: "unknown", since: now, reason: "The machine is being created.", checks: [] },
      healthMemory: { announced: "unknown", status: "unknown", since: now },
      error: null,
      observedGeneration: 0,
      expiryWarnings: [],
      announcedProtectedExpiry: false,
      maintenance: noMaintenance,
    },
  };
  const operation = newOperation({
    id: operationId,
    subject: serviceSubject(serviceId),
    organizationId,
    type: serviceOperations.create,
    now,
  });
  return { service, operation };
}

/** Errors of a request that only the catalog, or the reserved names, reveal. */
export function newServiceFaults(
  request: CreateManagedServiceRequest,
  { catalog, engines }: Pick<NewServiceContext, "catalog" | "engines">,
): readonly FieldFault[] {
  const name = reservedNameFault(request.name);
  const pooler = poolerFault(request.databaseType, request.pooler);
  const privateListener = privateListenerFault(request.databaseType, request.privateListener);
  const layoutMode = layoutModeFault(request.databaseType, request.layoutMode);
  const collation = serverCollationFault(request.databaseType, request.serverCollation);
  const chosen = chosenAutoscale({}, request.storageAutoscale);
  const autoscale = autoscaleFault(autoscaleOf({ ...(chosen && { storageAutoscale: chosen }) }), request.storageSizeGb);
  const { parameters, faults } = chooseFromCatalog(request, catalog, engines);
  return [
    ...(name === undefined ? [] : [name]),
    ...faults,
    ...nodeBoundFaults(request.databaseType, parameters, request.nodeCount ?? 1),
    ...canonicalCidrs(request.allowedCidrs?.values ?? []).faults,
    ...(pooler === undefined ? [] : [pooler]),
    ...(privateListener === undefined ? [] : [privateListener]),
    ...(layoutMode === undefined ? [] : [layoutMode]),
    ...(collation === undefined ? [] : [collation]),
    ...(autoscale === undefined ? [] : [autoscale]),
    ...replicationModeFaults(request.replicationMode, request.nodeCount),
  ];
}

function specOf(request: CreateManagedServiceRequest, context: NewServiceContext): ManagedServiceSpec {
  const { catalog, engines, now } = context;
  const { engine, version, storageTier, zone, parameters } = chooseFromCatalog(request, catalog, engines);
  assert(engine !== undefined, "the request was checked against the catalog");
  const hostname = hostnameOf(request.name, context.shortId, zone, context.domain);
  const { nodeCount = 1 } = request;
  const hasPeers = isCluster(request.databaseType);
  if (hasPeers) requireMemberCount(request.databaseType, nodeCount);
  else if (nodeCount > 1) requireReplicas(request.databaseType);
  const replicationMode = (request.replicationMode ?? "async") as ReplicationMode;
  requireReplicationMode(request.databaseType, replicationMode);
  const ttlHours = request.ttlHours ?? null;
  const pooler = chosenPooler({ databaseType: request.databaseType }, request.pooler);
  const storageAutoscale = chosenAutoscale({}, request.storageAutoscale);
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
    ...(engine.family === "files" && { bucketHost: true }),
    port: context.lowPorts ? engine.port : (engine.unprivilegedPort ?? engine.port),
    nodes: membersOf(context, nodeCount, hostname, zone).map((node) => (hasPeers ? firstPeer(node) : node)),
    ...(hasPeers && { nextNodeNumber: nodeCount + 1 }),
    ...(replicationMode !== "async" && { replicationMode }),
    power: "on",
    image: "",
    maintenanceWindow: windowOf(request.maintenanceWindow),
    restartCount: 0,
    instanceGeneration: 1,
    ...(pooler && { pooler }),
    ...(request.privateListener === true && { privateListener: true }),
    ...(request.layoutMode === "multi-db" && { layoutMode: "multi-db" }),
    ...chosenCollation(request.databaseType, request.serverCollation),
    ...(storageAutoscale && { storageAutoscale }),
  };
}

/** The primary, and replicas that copy its data once it runs. */
function membersOf(
  { nodeId, replicaIds }: Pick<NewServiceContext, "nodeId" | "replicaIds">,
  count: number,
  hostname: string,
  zone: string,
): NodeSpec[] {
  const primary: NodeSpec = { id: nodeId, hostname: nodeHostnameOf(hostname, 1), zone };
  const replicas = replicaIds
    .slice(0, count - 1)
    .map((id, index): NodeSpec => replicaNode({ id, hostname, zone, number: index + 2 }));
  return [primary, ...replicas];
}

/** Expiry of a service whose time to live starts at `now`, in milliseconds since 1970; null for no expiry. */
export function expiresAt(ttlHours: number | null, now: number): number | null {
  return ttlHours === null ? null : now + ttlHours * 3_600_000;
}
